// What roscpp says of the node's connections.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <ros/network.h>
#include <ros/xmlrpc_manager.h>
#include <sys/socket.h>
#include <xmlrpcpp/XmlRpc.h>

#include <string>

#include "rtmeter/adapter.hpp"

namespace rtmeter_ros1 {

// The transport of each connection, as the node itself says (INTRAPROCESS, TCPROS or UDPROS).
inline void describe_connections(rtmeter::Sink& sink) {
  const ros::XMLRPCManagerPtr& own = ros::XMLRPCManager::instance();
  XmlRpc::XmlRpcClient node(ros::network::getHost().c_str(), static_cast<int>(own->getServerPort()), "/");
  XmlRpc::XmlRpcValue parameters, result;
  parameters[0] = "/rtmeter";
  if (!node.execute("getBusInfo", parameters, result) || result.size() != 3) return;
  constexpr int kDirection = 2, kTransport = 3, kTopic = 4;
  for (int i = 0; i < result[2].size(); ++i) {
    XmlRpc::XmlRpcValue& one = result[2][i];
    const std::string topic = one[kTopic], transport = one[kTransport];
    std::string end = one[kDirection];  // i or o
    end.append(" ").append(topic, topic.rfind('/') + 1, topic.npos).append(": ").append(transport);
    if (topic != "/rosout") sink.put("connections", end);
  }
  int undelayed = 0;  // the sender's end sets it, as the receiver asks
  for (int fd = 0; fd < 1024; ++fd) {
    int flag = 0;
    socklen_t size = sizeof flag;
    if (getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &flag, &size) == 0 && flag != 0) ++undelayed;
  }
  sink.put("sockets_with_tcp_nodelay", std::to_string(undelayed));
}

}  // namespace rtmeter_ros1
