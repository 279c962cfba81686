// Requests and their answers: what the clients and the cycle share. Paces the releases,
// waits for answers, settles every release as served, lost, skipped or in flight.
#pragma once

#include <utility>

#include "measure/measurement.hpp"
#include "measure/pending.hpp"
#include "rtmeter/event_count.hpp"

namespace rtmeter {

// Columns includes the status; sent, answered and free are column indices; release is column 0.
template <std::size_t Columns, std::size_t kSent, std::size_t kAnswered, std::size_t kFree>
class Exchange : public Measurement {
 protected:
  using Ring = Pending<Columns>;
  using Slot = typename Ring::Slot;
  using State = typename Ring::State;

  explicit Exchange(Bench& bench)
      : Measurement(bench), grace_ns_(bench.clock.scripted() ? 0 : 100'000'000),
        pending_(room(bench.config)) {}

  // Sends the request of the release: takes a slot, stamps, publishes the slot, then the message.
  virtual void send(std::int64_t k, std::int64_t release_ns) noexcept = 0;
  // The way by which one thread receives: returns after an answer or the timeout. On a scripted clock no time
  // passes between two polls: it waits, lest time be carried past timeout_ns.
  void receive_once(std::int64_t timeout_ns) noexcept {
    if (b_.receive == RTM_RECEIVE_POLL && !b_.clock.scripted())
      b_.session.spin_some();
    else if (b_.receive == RTM_RECEIVE_SPIN && b_.clock.scripted())
      b_.session.spin(timeout_ns);
    else if (b_.receive == RTM_RECEIVE_CALL)  // the call has returned: nothing comes any more
      b_.clock.sleep_until_ns(b_.clock.now_ns() + timeout_ns);
    else
      b_.session.wait(timeout_ns);
  }

  // The sender sleeps to each release. one_at_a_time: it sends only when the last is settled. Where another
  // thread receives, it sleeps on while the answer comes, and looks for it when the next release has come.
  void run_paced(bool one_at_a_time, bool skip) noexcept {
    grid_ = {b_.clock.first_release_ns(b_.config.period_ns), b_.config.period_ns};
    std::int64_t free_ns = INT64_MIN;  // when the thread became free
    std::int64_t awaited = -1;         // the release whose answer another thread is to receive
    for (std::int64_t k = 0; k < b_.config.total() && !stopped(); ++k) {
      const std::int64_t release_ns = grid_.release_ns(k);
      if (!make_room()) break;
      if (skip && release_ns < free_ns) {
        pass_over(release_ns, free_ns);
        continue;
      }
      enter(k);
      const std::int64_t wake_ns = b_.clock.reach_ns(release_ns);
      if (stopped() && wake_ns < release_ns) break;  // woken to end, not by the release
      if (awaited >= 0) {
        free_ns = freed_ns(pending_.slot(std::exchange(awaited, -1)));
        if (stopped()) break;
        if (skip && release_ns < free_ns) {
          pass_over(release_ns, free_ns);
          continue;
        }
      }
      send(k, release_ns);
      if (!one_at_a_time)
        free_ns = pending_.slot(k).at(kSent);
      else if (apart_)
        awaited = k;
      else
        free_ns = freed_ns(pending_.slot(k));
      settle(b_.clock.now_ns());
    }
  }

  // Waits until every request sent is settled, or the run is stopped.
  void finish() noexcept {
    for (;;) {
      const std::uint32_t ticket = answered_.ticket();
      settle(b_.clock.now_ns());
      if (pending_.none_outstanding() || stopped()) break;
      const std::int64_t horizon_ns = pending_.slot(pending_.oldest()).at(kSent) + lost_after_ns();
      wait_for_answer(ticket, left_ns(horizon_ns, b_.clock.now_ns()));
    }
    leave();
    if (stopped()) settle_interrupted();
  }

  // Another column of the row that an answer settles, and its value.
  struct Beside {
    std::size_t column = Columns;  // none
    std::int64_t value = 0;
  };

  // Receiver: what an answer for release k means. True if it settled the release as answered; the
  // slot's row then holds its stamp. Measured path; one receiver at a time. What looks at the payload takes
  // long: only once the release is claimed, lest the sender give up meanwhile what was stamped in time.
  template <typename Intact>
  bool accept(std::int64_t k, std::int64_t now_ns, Beside beside, Intact&& intact) noexcept {
    stampers_.note();
    Slot* s = pending_.find(k);
    if (s != nullptr && Ring::claim(*s)) {
      if (!intact()) {
        Ring::settle(*s, State::outstanding);
        note(b_.counters.corrupted, k);
        return false;
      }
      const bool late = now_ns - s->at(kSent) > b_.config.loss_timeout_ns;
      if (late) note(b_.counters.late_after_lost, k);
      if (!late) s->set(kAnswered, now_ns);
      if (!late && beside.column < Columns) s->set(beside.column, beside.value);
      Ring::settle(*s, late ? State::late : State::answered);
      if (apart_) answered_.notify();
      return !late;
    }
    State lost = State::lost;
    if (!intact())
      note(b_.counters.corrupted, k);
    else if (s == nullptr || s->state.compare_exchange_strong(lost, State::late))
      note(b_.counters.late_after_lost, k);  // nullptr: longer ago than the ring remembers
    else
      note(b_.counters.duplicate, k);
    return false;
  }

  void note(std::atomic<std::uint64_t>& counter, std::int64_t k) const noexcept {
    if (!warm(k)) counter.fetch_add(1, std::memory_order_relaxed);
  }

  // Sender: settles the release as passed over.
  void pass_over(std::int64_t release_ns, std::int64_t free_ns) noexcept {
    Slot& s = pending_.take();
    s.set(0, release_ns);
    s.set(kFree, free_ns);
    pending_.publish(s, State::skipped);
    settle(free_ns);
  }

  // Sender: gives up what is overdue and records what is settled.
  void settle(std::int64_t now_ns) noexcept {
    for (;;) {
      record_settled(false);
      if (pending_.none_outstanding()) return;
      Slot& s = pending_.slot(pending_.oldest());
      if (now_ns - s.at(kSent) < lost_after_ns() || !Ring::lose(s)) return;
    }
  }

  // More requests are under way than the ring holds only after a burst: the sender then waits, and
  // shows as late; false if the run is to end instead. On a scripted clock waiting would change what the
  // script says: the ring grows.
  bool make_room() noexcept {
    if (pending_.full() && b_.clock.scripted()) {
      settle(b_.clock.now_ns());
      if (pending_.full()) pending_.grow();
    }
    while (pending_.full() && !stopped()) {
      const std::uint32_t ticket = answered_.ticket();
      settle(b_.clock.now_ns());
      if (pending_.full()) wait_for_answer(ticket, lost_after_ns());
    }
    return !pending_.full();
  }

  Grid grid_;
  std::int64_t grace_ns_;  // real time: the receiver may have stamped but not stored yet
  Ring pending_;
  bool apart_ = false;             // answers come on another thread
  ThreadEventCount answered_{}; // rung by that thread; a system call only if the sender waits

 private:
  static std::size_t room(const Config& c) {
    const std::int64_t in_time = c.loss_timeout_ns / c.period_ns + 2;
    constexpr std::int64_t kMost = std::int64_t{1} << 22;
    const std::int64_t wanted = in_time * 2 < c.total() ? in_time * 2 : c.total();
    return static_cast<std::size_t>(wanted < kMost ? wanted : kMost);
  }
  std::int64_t lost_after_ns() const noexcept { return b_.config.loss_timeout_ns + grace_ns_; }
  // The time left, never none: who gave the answer's stamp may be about to store it, on this very CPU.
  static std::int64_t left_ns(std::int64_t until_ns, std::int64_t now_ns) noexcept {
    constexpr std::int64_t kLeast = 1'000'000;
    return until_ns > now_ns ? until_ns - now_ns : kLeast;
  }

  // The sender has nothing else to do: until there may be an answer that came after the ticket.
  void wait_for_answer(std::uint32_t ticket, std::int64_t timeout_ns) noexcept {
    if (apart_)
      answered_.wait(ticket, timeout_ns);
    else
      receive_once(timeout_ns);
  }

  // Waits until the release is settled or the run is stopped; the moment from which the next can be sent.
  std::int64_t freed_ns(Slot& s) noexcept {
    const std::int64_t lost_at_ns = s.at(kSent) + b_.config.loss_timeout_ns;
    for (;;) {
      const std::uint32_t ticket = answered_.ticket();
      if (!Ring::unsettled(s) || stopped()) break;
      const std::int64_t now_ns = b_.clock.now_ns();
      if (now_ns >= lost_at_ns && Ring::lose(s)) break;
      wait_for_answer(ticket, left_ns(lost_at_ns, now_ns));
    }
    if (s.state.load(std::memory_order_acquire) == State::answered) return s.at(kAnswered);
    return apart_ ? lost_at_ns : b_.clock.now_ns();  // a sender that slept was not held up until now
  }

  void record_settled(bool all) noexcept {
    pending_.emit(all, [this](std::int64_t k, const Slot& s, State state) noexcept {
      std::int64_t row[Columns];
      for (std::size_t c = 0; c + 1 < Columns; ++c) row[c] = s.at(c);
      const Status outcome = state == State::answered                       ? kServed
                             : state == State::skipped                      ? kSkipped
                             : state == State::lost || state == State::late ? kLost
                                                                            : kInFlight;
      row[Columns - 1] = status(outcome, k);
      b_.recorder.record(row);
    });
  }

  // Interrupted: what was sent and not settled, and what was due and not sent, is in flight.
  void settle_interrupted() noexcept {
    const std::int64_t now_ns = b_.clock.now_ns();
    b_.recorder.wait_for_room();
    record_settled(true);
    for (std::int64_t k = pending_.next(); k < b_.config.total() && grid_.release_ns(k) <= now_ns; ++k) {
      Slot& s = pending_.take();
      s.set(0, grid_.release_ns(k));
      pending_.publish(s, State::outstanding);
      record_settled(true);
    }
  }
};

}  // namespace rtmeter
