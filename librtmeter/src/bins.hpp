// Counts in fixed bins, equal for everyone, so that sums of counts are the distribution of all: 64 to an
// octave (docs/method.md, "Distributions that merge").
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "json/json.hpp"

namespace rtmeter {

// The bin of a value: below 64 one for each value, negative ones mirrored.
inline int bin_of(std::int64_t ns) noexcept {
  if (ns < 0) return -1 - bin_of(-(ns + 1));
  if (ns < 64) return static_cast<int>(ns);
  const int e = 63 - std::countl_zero(static_cast<std::uint64_t>(ns)) - 6;
  return 64 * (e + 1) + static_cast<int>(ns >> e) - 64;
}

// The lowest value of a bin.
inline std::int64_t lowest_of(int bin) noexcept {
  if (bin < 0) return -lowest_of(-bin);
  return bin < 64 ? bin : std::int64_t{64 + bin % 64} << (bin / 64 - 1);
}

// Of one quantity: the bins and, exact, n, minimum, and maximum with its k.
class Bins {
 public:
  void add(std::int64_t k, std::int64_t ns) { add_falling(k, ns, 1, 1); }
  // The same of n values, each less than the one before by step_ns, above 0: k is the first one's.
  void add_falling(std::int64_t k, std::int64_t ns, std::int64_t step_ns, std::int64_t n) {
    if (n_ == 0 || ns > max_ns_) max_ns_ = ns, max_k_ = k;
    if (const std::int64_t last_ns = ns - (n - 1) * step_ns; n_ == 0 || last_ns < min_ns_) min_ns_ = last_ns;
    n_ += static_cast<std::uint64_t>(n);
    while (n > 0) {
      const int bin = bin_of(ns);
      auto& side = bin < 0 ? below_ : above_;
      const auto at = static_cast<std::size_t>(bin < 0 ? -1 - bin : bin);
      if (at >= side.size()) side.resize(at + 1);
      const std::int64_t in_bin = n == 1 ? 1 : std::min(n, (ns - lowest_of(bin)) / step_ns + 1);
      side[at] += static_cast<std::uint64_t>(in_bin);
      ns -= in_bin * step_ns;
      n -= in_bin;
    }
  }

  Json to_json() const {
    Json counts = Json::array();
    for (std::size_t i = below_.size(); i-- > 0;) put(counts, -1 - static_cast<std::int64_t>(i), below_[i]);
    for (std::size_t i = 0; i < above_.size(); ++i) put(counts, static_cast<std::int64_t>(i), above_[i]);
    return Json(Json::Object{{"n", n_},
                             {"min_ns", n_ == 0 ? Json() : Json(min_ns_)},
                             {"max_ns", n_ == 0 ? Json() : Json(max_ns_)},
                             {"max_k", n_ == 0 ? Json() : Json(max_k_)},
                             {"bins", counts}});
  }

 private:
  static void put(Json& counts, std::int64_t bin, std::uint64_t count) {
    if (count > 0) counts.push(Json(Json::Array{Json(bin), Json(count)}));
  }

  std::vector<std::uint64_t> above_, below_;  // bins 0, 1, …; -1, -2, …
  std::uint64_t n_ = 0;
  std::int64_t min_ns_ = 0, max_ns_ = 0, max_k_ = 0;
};

}  // namespace rtmeter
