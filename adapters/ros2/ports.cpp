#include "ports.hpp"

#include <algorithm>
#include <cstring>
#include <rtmeter_msgs/msg/block128_k.hpp>
#include <rtmeter_msgs/msg/block1_k.hpp>
#include <rtmeter_msgs/msg/block1_m.hpp>
#include <rtmeter_msgs/msg/block32_k.hpp>
#include <rtmeter_msgs/msg/block4_m.hpp>
#include <rtmeter_msgs/msg/message.hpp>
#include <type_traits>
#include <utility>

#include "options.hpp"

#ifdef RTMETER_ROS2_TLSF
#include <rclcpp/strategies/allocator_memory_strategy.hpp>
#include <tlsf_cpp/tlsf.hpp>
#endif

namespace rtmeter_ros2 {
namespace {

using rtmeter_msgs::msg::Message;
using Std = std::allocator<void>;
#ifdef RTMETER_ROS2_TLSF
using Tlsf = tlsf_heap_allocator<void>;
#endif

// One for all, and never destroyed: each makes a pool of its own, which its copies would destroy.
template <typename Allocator>
std::shared_ptr<Allocator> shared_allocator() {
  static auto* const all = new std::shared_ptr<Allocator>(std::make_shared<Allocator>());
  return *all;
}

// Of any length, or blocks of fixed size, which are lent.
template <typename T>
constexpr bool kIsLent = !std::is_same_v<T, Message>;

template <typename T>
void set(T& message, const rtm_message& from) {
  message.sequence = from.sequence;
  if constexpr (kIsLent<T>)
    message.bytes = from.bytes;
  else
    message.payload.resize(from.bytes);
  std::memcpy(message.payload.data(), from.data, from.bytes);
}

template <typename T>
rtm_message view(const T& message) {
  if constexpr (kIsLent<T>)
    return {message.sequence, message.payload.data(),
            std::min(message.bytes, static_cast<std::uint32_t>(message.payload.size()))};
  else
    return {message.sequence, message.payload.data(), static_cast<std::uint32_t>(message.payload.size())};
}

// What rclcpp says against a publisher or subscription, in terms of the options.
template <typename Create>
auto created(const EndpointSettings& settings, Create&& create) {
  try {
    return create();
  } catch (const std::invalid_argument& error) {
    if (!settings.intra_process) throw;
    throw kOptions.intra_process.error(
        "yes", std::string("rclcpp: ") + error.what(),
        "leave out the options history and durability, or choose intra_process=no");
  }
}

rtmeter::SetupError not_lent() {
  const std::string rmw = rmw_get_implementation_identifier();
  return kOptions.loan.error("yes", rmw + " lends this publisher no memory",
                             "see the adapter's page for what each RMW needs for it, or choose loan=no");
}

template <typename T, typename Allocator>
class PublisherOf final : public Publisher {
 public:
  PublisherOf(rclcpp::Node& node, const rclcpp::CallbackGroup::SharedPtr& group,
              const EndpointSettings& settings, const std::string& topic)
      : Publisher("publisher of " + topic), intra_process_(settings.intra_process) {
    rclcpp::PublisherOptionsWithAllocator<Allocator> options;
    options.callback_group = group;
    options.allocator = shared_allocator<Allocator>();
    options.event_callbacks.incompatible_qos_callback = on_refusal<rclcpp::QOSOfferedIncompatibleQoSInfo>();
    publisher_ = created(settings, [&] {
      return node.create_publisher<T>(rtmeter_ros::topic_name(settings.run, topic), settings.qos, options);
    });
    if (kIsLent<T> && !publisher_->can_loan_messages()) throw not_lent();
    if constexpr (!kIsLent<T>) message_.payload.reserve(settings.run.payload_bytes);
  }

  void publish(const rtm_message& message) override {
    if constexpr (kIsLent<T>) {
      auto lent = publisher_->borrow_loaned_message();
      set(lent.get(), message);
      publisher_->publish(std::move(lent));
    } else if (intra_process_) {  // handed over, as whoever wants no copy publishes
      auto owned = make();
      set(*owned, message);
      publisher_->publish(std::move(owned));
    } else {
      set(message_, message);
      publisher_->publish(message_);
    }
  }

  std::size_t matched() const override {
    return std::max(publisher_->get_subscription_count(), publisher_->get_intra_process_subscription_count());
  }
  rtmeter_common::EndFacts facts() const override {
    return facts_with(publisher_->get_actual_qos(), matched());
  }

 private:
  auto make() {
    if constexpr (std::is_same_v<Allocator, Std>) {
      return std::make_unique<T>();
    } else {
      using Traits = rclcpp::allocator::AllocRebind<T, Allocator>;
      static auto* const allocator = new typename Traits::allocator_type(*shared_allocator<Allocator>());
      rclcpp::allocator::Deleter<typename Traits::allocator_type, T> deleter;
      rclcpp::allocator::set_allocator_for_deleter(&deleter, allocator);
      T* const raw = Traits::allocate(*allocator, 1);
      Traits::construct(*allocator, raw);
      return std::unique_ptr<T, decltype(deleter)>(raw, deleter);
    }
  }

  struct Nothing {};
  const bool intra_process_;
  std::conditional_t<kIsLent<T>, Nothing, T> message_;
  std::shared_ptr<rclcpp::Publisher<T, Allocator>> publisher_;
};

template <typename T, typename Allocator>
class SubscriptionOf final : public Port {
 public:
  SubscriptionOf(rclcpp::Node& node, const rclcpp::CallbackGroup::SharedPtr& group,
                 const EndpointSettings& settings, const std::string& topic, rtm_on_message on_message,
                 void* user)
      : Port("subscription of " + topic) {
    rclcpp::SubscriptionOptionsWithAllocator<Allocator> options;
    options.callback_group = group;
    options.allocator = shared_allocator<Allocator>();
    options.event_callbacks.incompatible_qos_callback = on_refusal<rclcpp::QOSRequestedIncompatibleQoSInfo>();
    const auto callback = [on_message, user](std::shared_ptr<const T> received) {
      const rtm_message message = view(*received);
      on_message(user, &message);
    };
    using Strategy = rclcpp::message_memory_strategy::MessageMemoryStrategy<T, Allocator>;
    subscription_ = created(settings, [&] {
      return node.create_subscription<T>(rtmeter_ros::topic_name(settings.run, topic), settings.qos, callback,
                                         options, std::make_shared<Strategy>(shared_allocator<Allocator>()));
    });
  }

  rtmeter_common::EndFacts facts() const override {
    return facts_with(subscription_->get_actual_qos(), subscription_->get_publisher_count());
  }

 private:
  rclcpp::SubscriptionBase::SharedPtr subscription_;
};

// Says a type.
template <typename T>
struct Type {
  using type = T;
};

template <typename T>
constexpr std::size_t kRoom = std::tuple_size<decltype(T::payload)>::value;

// make(a message, an allocator), of the types that the run needs.
template <typename Make>
auto with_types(const EndpointSettings& settings, Make&& make) {
  using namespace rtmeter_msgs::msg;
#ifdef RTMETER_ROS2_TLSF
  if (settings.tlsf) return make(Type<Message>(), Type<Tlsf>());
#endif
  const Type<Std> ordinary;
  if (!settings.loan) return make(Type<Message>(), ordinary);
  const std::size_t bytes = settings.run.payload_bytes;
  if (bytes <= kRoom<Block1K>) return make(Type<Block1K>(), ordinary);
  if (bytes <= kRoom<Block32K>) return make(Type<Block32K>(), ordinary);
  if (bytes <= kRoom<Block128K>) return make(Type<Block128K>(), ordinary);
  if (bytes <= kRoom<Block1M>) return make(Type<Block1M>(), ordinary);
  return make(Type<Block4M>(), ordinary);
}

bool tlsf_of(const rtm_run& run) {
#ifndef RTMETER_ROS2_TLSF
  if (kOptions.tlsf.text_or(run, "") == "tlsf")
    throw kOptions.tlsf.error("tlsf", "tlsf_cpp was not there when the adapter was built",
                              "install ros-<distro>-tlsf-cpp, source its setup.bash, and build again");
#endif
  return kOptions.tlsf.of(run);
}

rclcpp::QoS qos_of(const rtm_run& run) {
  if (!has_topics(run)) return rclcpp::ServicesQoS();
  const rmw_qos_profile_t profile = rtmeter_ros::qos_of(run, kOptions);
  return rclcpp::QoS(rclcpp::QoSInitialization::from_rmw(profile), profile);
}

}  // namespace

EndpointSettings::EndpointSettings(const rtm_run& of)
    : run(of), qos(qos_of(of)), intra_process(has_topics(of) && kOptions.intra_process.of(of)),
      loan(has_topics(of) && kOptions.loan.of(of)), tlsf(has_topics(of) && tlsf_of(of)) {
  if (loan && (intra_process || tlsf))
    throw kOptions.loan.error(
        "yes",
        std::string("means nothing with option ") + (intra_process ? "intra_process=yes" : "allocator=tlsf"),
        "leave out one of the two");
  constexpr std::size_t kMost = kRoom<rtmeter_msgs::msg::Block4M>;
  if (loan && run.payload_bytes > kMost) throw rtmeter_common::too_large_for_loans(run.payload_bytes, kMost);
}

std::unique_ptr<Publisher> make_publisher(rclcpp::Node& node, const rclcpp::CallbackGroup::SharedPtr& group,
                                          const EndpointSettings& settings, const std::string& topic) {
  return with_types(settings, [&](auto message, auto allocator) -> std::unique_ptr<Publisher> {
    using T = typename decltype(message)::type;
    using Allocator = typename decltype(allocator)::type;
    return std::make_unique<PublisherOf<T, Allocator>>(node, group, settings, topic);
  });
}

std::unique_ptr<Port> make_subscription(rclcpp::Node& node, const rclcpp::CallbackGroup::SharedPtr& group,
                                        const EndpointSettings& settings, const std::string& topic,
                                        rtm_on_message on_message, void* user) {
  return with_types(settings, [&](auto message, auto allocator) -> std::unique_ptr<Port> {
    using T = typename decltype(message)::type;
    using Allocator = typename decltype(allocator)::type;
    return std::make_unique<SubscriptionOf<T, Allocator>>(node, group, settings, topic, on_message, user);
  });
}

rclcpp::ExecutorOptions executor_options(const EndpointSettings& settings) {
  rclcpp::ExecutorOptions options;
#ifdef RTMETER_ROS2_TLSF
  using rclcpp::memory_strategies::allocator_memory_strategy::AllocatorMemoryStrategy;
  if (settings.tlsf)
    options.memory_strategy = std::make_shared<AllocatorMemoryStrategy<Tlsf>>(shared_allocator<Tlsf>());
#else
  static_cast<void>(settings);
#endif
  return options;
}

}  // namespace rtmeter_ros2
