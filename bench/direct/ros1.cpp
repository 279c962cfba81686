// The smallest round trip over roscpp: TCPROS with TCP_NODELAY, queues of one. ROS_MASTER_URI must answer.
#include <ros/ros.h>
#include <unistd.h>

#include <thread>

#include "../../adapters/ros1/message.hpp"
#include "ping_pong.hpp"

using rtmeter_ros1::Message;

int main(int argc, char** argv) {
  const direct::Plan plan = direct::plan(argc, argv);
  ros::init(ros::M_string{{"__ip", "127.0.0.1"}}, plan.is_ping ? "direct_ping" : "direct_pong");
  ros::NodeHandle node;
  direct::Trips trips(plan);
  ros::Publisher publisher = node.advertise<Message>(plan.is_ping ? "/direct_ping" : "/direct_pong", 1);
  const boost::function<void(const boost::shared_ptr<Message const>&)> arrived =
      [&](const boost::shared_ptr<Message const>& message) {
        if (plan.is_ping)
          trips.came(message->number);
        else
          publisher.publish(message);
      };
  const ros::Subscriber subscriber =
      node.subscribe<Message>(plan.is_ping ? "/direct_pong" : "/direct_ping", 1, arrived, ros::VoidConstPtr(),
                              ros::TransportHints().tcpNoDelay());
  if (!plan.is_ping) {
    ros::spin();
    return 0;
  }
  while (publisher.getNumSubscribers() == 0 || subscriber.getNumPublishers() == 0) usleep(1000);
  usleep(500000);  // the other side may be a little later
  const auto message = boost::make_shared<Message>();
  message->payload.resize(direct::kPayload);
  std::thread([] { ros::spin(); }).detach();
  trips.ping([&](std::size_t n) {
    message->number = n;
    publisher.publish(message);
  });
}
