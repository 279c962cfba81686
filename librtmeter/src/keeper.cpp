#include "keeper.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <utility>

#include "errors.hpp"
#include "log/recorder.hpp"

namespace rtmeter {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kOutcome = 15;  // bits of the status
constexpr std::size_t kBlockColumns = 6;

std::string file_of(const std::string& folder, const char* part, std::int64_t k) {
  char name[64];
  std::snprintf(name, sizeof name, "/%s-%015lld.rtlog", part, static_cast<long long>(k));
  return folder + name;
}

Json columns_json(std::initializer_list<const char*> names) {
  Json columns = Json::array();
  for (const char* name : names) {
    const std::string text = name;
    const char* unit = text == "status" ? "code" : text.ends_with("_ns") ? "ns" : "1";
    columns.push(Json(Json::Object{{"name", text}, {"unit", unit}}));
  }
  return columns;
}

// Of a folder that cannot be read, or no further, what could be.
template <typename Work>
void for_each_in(const fs::path& folder, Work&& work) {
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    work(at->path());
}

}  // namespace

bool Keeper::Row::warm() const noexcept { return (status & kWarmUpFlag) != 0; }
bool Keeper::Row::skipped() const noexcept { return (status & kOutcome) == kSkipped; }

template <typename Work>
void Keeper::attempt(Work&& work) {
  try {
    work();
  } catch (const std::exception& error) {
    fail(error);
  }
}

Keeper::Keeper(Keeping keeping) : keeping_(std::move(keeping)) {
  before_.resize(static_cast<std::size_t>(kSurroundings), Row{-1, 0, 0, 0, 0, 0});
  begin_segment(0, INT64_MIN);
}

Keeper::~Keeper() = default;

void Keeper::append(const std::int64_t* rows, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i, rows += JobRow::kColumns) {
    attempt([&] {
      fill_gap(rows);
      take({rows[JobRow::k], rows[JobRow::release], rows[JobRow::wake], rows[JobRow::done], kAbsent,
            rows[JobRow::status]});
    });
    next_k_ = rows[JobRow::k] + 1;
    last_done_ns_ = rows[JobRow::done] == kAbsent ? rows[JobRow::wake] : rows[JobRow::done];
  }
  pass_on();
}

// A job in time is in flight, and in no count, nor is what comes after it.
bool Keeper::settle(const std::int64_t* job, std::int64_t now_ns, std::int64_t open_ns) {
  const bool open = job != nullptr && job[JobRow::k] >= next_k_;
  const bool lost = open && now_ns - job[JobRow::release] > keeping_.deadline_ns;
  if (lost) {
    append(job, 1);
    last_done_ns_ = now_ns;  // it has not become free since
  }
  if (open && !lost) {
    fill_gap(job);
  } else if (next_k_ > 0) {
    // How many releases after the last one that has a row the next undecided one lies.
    const std::int64_t n = (last_done_ns_ - open_ns - last_ns_) / keeping_.period_ns + 1;
    const std::int64_t next[JobRow::kColumns] = {next_k_ - 1 + n, last_ns_ + n * keeping_.period_ns,
                                                 last_done_ns_, kAbsent, kInFlight};
    fill_gap(next);
  }
  pass_on();
  return lost;
}

void Keeper::take(const Row& row) {
  write_whole(row);
  keep_late(row, count(row));
}

void Keeper::write_whole(const Row& row) {
  if (segment_began_ns_ == INT64_MIN) segment_began_ns_ = row.release;
  const bool full = whole_ && row.release - segment_began_ns_ >= keeping_.whole_ns / kSegments;
  if (full) {
    pass_on();
    end_block();  // so that what the bins have is in the blocks
    attempt([this] { end_segment(facts_); });
    attempt([this] { write_bins(); });
    attempt([&] { drop_old_segments(std::max(row.release, whole_from_ns_ + keeping_.whole_ns)); });
  }
  if (full && row.release < whole_from_ns_) {
    retry_ns_ = whole_from_ns_;
  } else if (full || (!whole_ && row.release >= retry_ns_)) {
    attempt([&] { begin_segment(row.k, row.release); });
    retry_ns_ = row.release + kRetryNs;
  }
  last_ns_ = row.release;
  if (whole_) batch_.insert(batch_.end(), {row.release, row.wake, row.done, row.free, row.status});
  if (std::ssize(batch_) >= kMostRowsHeld * std::int64_t{kLogColumns}) pass_on();
}

void Keeper::pass_on() {
  try {
    if (whole_ && !batch_.empty()) whole_->append(batch_.data(), batch_.size() / kLogColumns);
  } catch (const std::exception& error) {
    fail(error);
    segments_.back().ended_ns = last_ns_;
    whole_.reset();
    retry_ns_ = last_ns_ + kRetryNs;
  }
  batch_.clear();
}

// Everything, warm-up apart, per release: returns whether it missed the deadline.
bool Keeper::count(const Row& row) {
  counted_k_ = row.k + 1;
  if (row.warm()) return false;
  const std::int64_t outcome = row.status & kOutcome;
  if (first_measured_ns_ == INT64_MIN) first_measured_ns_ = row.release;
  ++(outcome == kSkipped ? skipped_ : outcome == kLost ? lost_ : served_);
  std::int64_t value_ns = INT64_MAX;
  if (outcome != kLost) {
    value_ns = (outcome == kSkipped ? row.free : row.done) - row.release;
    latency_.add(row.k, (outcome == kSkipped ? row.free : row.wake) - row.release);
    completion_.add(row.k, value_ns);
  }
  const bool missed = outcome != kServed || value_ns > keeping_.deadline_ns;
  misses_ += missed ? 1 : 0;
  count_block(row, value_ns, missed);
  return missed;
}

void Keeper::count_block(const Row& row, std::int64_t value_ns, bool missed) {
  const std::int64_t number = (row.release - first_measured_ns_) / kBlockNs;
  if (number != block_.number) {
    end_block();
    block_ = {number, 0, 0, value_ns, row.k};
  }
  ++block_.n;
  block_.misses += missed ? 1 : 0;
  if (value_ns > block_.max_ns) block_.max_ns = value_ns, block_.max_k = row.k;
}

// A block that a segment's end cuts has two rows, of one number.
void Keeper::end_block() {
  if (block_.n == 0) return;
  const std::int64_t values[kBlockColumns] = {block_.number, block_.n,     block_.misses,
                                              block_.max_ns, block_.max_k, kServed};
  try {
    if (!blocks_) {
      Json header = header_of(0, "blocks");
      header["columns"] = columns_json({"block", "released", "missed", "max_ns", "max_k", "status"});
      blocks_ = std::make_unique<LogWriter>(file_of(keeping_.folder, "blocks", block_.number), header);
    }
    blocks_->append(values, 1);
  } catch (const std::exception& error) {
    fail(error);
    blocks_.reset();
  }
  block_.n = 0;
  block_.number = -1;
}

void Keeper::keep_late(const Row& row, bool late) {
  const std::int64_t used = late_bytes_used();
  if (late && used >= keeping_.late_bytes) {
    ++late_counted_;
  } else if (late && used >= keeping_.late_bytes / 2) {
    ++late_alone_;
    put_late(row, late);
  } else if (late) {
    for (std::int64_t k = std::max(row.k - kSurroundings, std::int64_t{0}); k < row.k; ++k) {
      const Row& one = before_[static_cast<std::size_t>(k % kSurroundings)];
      if (one.k == k && k >= late_next_k_) put_late(one, false);
    }
    put_late(row, late);
    keep_until_k_ = row.k + kSurroundings;
  } else if (row.k <= keep_until_k_) {
    put_late(row, late);
  }
  before_[static_cast<std::size_t>(row.k % kSurroundings)] = row;
}

void Keeper::put_late(const Row& row, bool late) {
  if (!late_ && row.release < late_retry_ns_) {
    late_counted_ += late ? 1 : 0;
    late_next_k_ = row.k + 1;
    return;
  }
  const std::int64_t values[kLogColumns] = {row.release, row.wake, row.done, row.free, row.status};
  late_held_ += late ? 1 : 0;
  try {
    if (!late_) {
      Json header = header_of(row.k, "late");
      header["sparse"] = true;
      late_ = std::make_unique<LogWriter>(file_of(keeping_.folder, "late", row.k), header);
    } else if (row.k != late_next_k_) {
      late_->go_to(static_cast<std::uint64_t>(row.k));
      late_held_ = late ? 1 : 0;  // it flushed
    }
    late_->append(values, 1);
    if (late_->held_back() == 0) late_held_ = 0;
  } catch (const std::exception& error) {
    end_late(error, row.release);
  }
  late_next_k_ = row.k + 1;
}

std::int64_t Keeper::late_bytes_used() const {
  return late_written_ + (late_ ? static_cast<std::int64_t>(late_->bytes()) : 0);
}

void Keeper::end_late(const std::exception& error, std::int64_t release_ns) {
  fail(error);
  late_counted_ += std::exchange(late_held_, 0);
  late_written_ = late_bytes_used();
  late_.reset();
  late_retry_ns_ = release_ns + kRetryNs;
}

void Keeper::flush() {
  if (whole_) attempt([this] { whole_->flush(); });
  if (!late_) return;
  try {
    late_->flush();
    late_held_ = 0;
  } catch (const std::exception& error) {
    end_late(error, last_ns_);
  }
}

std::size_t Keeper::held_back() const {
  return (whole_ ? whole_->held_back() : 0) + (late_ ? late_->held_back() : 0);
}

void Keeper::update(const Json& facts) {
  for (const auto& [key, value] : facts.as_object()) facts_[key] = value;
  if (whole_) attempt([&] { whole_->update(facts); });
}

void Keeper::finish(const Json& facts) {
  flush();
  for (const auto& [key, value] : facts.as_object()) facts_[key] = value;
  end_block();
  attempt([this] { write_bins(); });
  attempt([this] { end_segment(facts_); });
  if (late_) attempt([this] { late_->finish(facts_); });
  if (blocks_) attempt([this] { blocks_->finish(Json::object()); });
  tell();
}

void Keeper::tell() const {
  if (!failure_.empty())
    throw Failure("log", keeping_.folder, failure_,
                  "make room there: what is missing is said when it is read");
}

Json Keeper::header_of(std::int64_t first_row, const char* part) const {
  Json header = keeping_.header;
  header["columns"] = columns_json({"release_ns", "wake_ns", "done_ns", "free_ns", "status"});
  header["first_row"] = first_row;
  header["part"] = part;
  for (const auto& [key, value] : facts_.as_object()) header[key] = value;
  return header;
}

void Keeper::begin_segment(std::int64_t k, std::int64_t at_ns) {
  whole_ = std::make_unique<LogWriter>(file_of(keeping_.folder, "whole", k), header_of(k, "whole"));
  segments_.push_back({file_of(keeping_.folder, "whole", k), INT64_MAX});
  segment_began_ns_ = at_ns;
}

void Keeper::end_segment(const Json& facts) {
  if (!whole_) return;  // it could not be written on, just now
  const auto ended = std::move(whole_);
  segments_.back().ended_ns = last_ns_;
  ended->finish(facts);
}

// Those of earlier starts of the program, too, by when they were written last.
void Keeper::drop_old_segments(std::int64_t now_ns) {
  const auto old = [&](const Segment& one) { return one.ended_ns < now_ns - keeping_.whole_ns; };
  for (const Segment& one : segments_)
    if (old(one)) std::remove(one.path.c_str());
  std::erase_if(segments_, old);
  drop_whole_logs_of_earlier_starts(keeping_.folder, keeping_.whole_ns);
}

void drop_whole_logs_of_earlier_starts(const std::string& folder, std::int64_t whole_ns) {
  const fs::path own(folder);
  const std::int64_t oldest_s = static_cast<std::int64_t>(std::time(nullptr)) - whole_ns / 1'000'000'000;
  for_each_in(own.parent_path(), [&](const fs::path& start) {
    if (start == own || start.extension() != ".loop") return;
    for_each_in(start, [&](const fs::path& file) {
      struct stat about{};
      std::error_code error;
      if (file.filename().string().rfind("whole-", 0) == 0 && stat(file.c_str(), &about) == 0 &&
          static_cast<std::int64_t>(about.st_mtime) < oldest_s)
        fs::remove(file, error);
    });
  });
}

// Of all rows before counted_k_: whole at any moment.
void Keeper::write_bins() {
  if (blocks_) blocks_->flush();
  const Json document(Json::Object{{"format", "rtmeter-loop-bins"},
                                   {"version", 1},
                                   {"rows", counted_k_},
                                   {"warm_up", keeping_.warm_up},
                                   {"period_ns", keeping_.period_ns},
                                   {"deadline_ns", keeping_.deadline_ns},
                                   {"served", served_},
                                   {"skipped", skipped_},
                                   {"lost", lost_},
                                   {"missed", misses_},
                                   {"late_without_surroundings", late_alone_},
                                   {"late_only_counted", late_counted_},
                                   {"failure", failure_.empty() ? Json() : Json(failure_)},
                                   {"quantities", Json(Json::Object{{"completion", completion_.to_json()},
                                                                    {"latency", latency_.to_json()}})}});
  const std::string path = keeping_.folder + "/bins.json", fresh = path + ".new";
  std::ofstream file(fresh, std::ios::trunc);
  file << document.dump() << "\n";
  file.close();
  if (file.fail() || std::rename(fresh.c_str(), path.c_str()) != 0)
    throw Failure("log", path, std::string("cannot be written: ") + std::strerror(errno), "make room there");
}

void Keeper::fail(const std::exception& error) {
  if (failure_.empty()) failure_ = error.what();
}

}  // namespace rtmeter
