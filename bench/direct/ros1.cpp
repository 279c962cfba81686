// The smallest round trip over roscpp: TCPROS with TCP_NODELAY, queues of one. ROS_MASTER_URI must answer.
#include <ros/callback_queue.h>
#include <ros/ros.h>
#include <unistd.h>

#include "../../adapters/ros1/message.hpp"
#include "ping_pong.hpp"

using rtmeter_ros1::Message;

int main(int argc, char** argv) {
  const direct::Plan plan = direct::plan(argc, argv);
  ros::init(ros::M_string{{"__ip", "127.0.0.1"}}, plan.is_ping ? "direct_ping" : "direct_pong");
  ros::NodeHandle node;
  std::uint64_t newest = UINT64_MAX;
  ros::Publisher publisher = node.advertise<Message>(plan.is_ping ? "/direct_ping" : "/direct_pong", 1);
  const boost::function<void(const boost::shared_ptr<Message const>&)> arrived =
      [&](const boost::shared_ptr<Message const>& message) {
        newest = message->number;
        if (!plan.is_ping) publisher.publish(message);
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
  return direct::ping(
      plan,
      [&](std::size_t n) {
        message->number = n;
        publisher.publish(message);
      },
      [&](std::size_t n) {
        const std::int64_t give_up = direct::now_ns() + 500000000;
        while (newest != n && direct::now_ns() < give_up)
          ros::getGlobalCallbackQueue()->callOne(ros::WallDuration(0.5));
        return newest == n;
      });
}
