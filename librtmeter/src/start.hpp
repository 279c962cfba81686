// The folder of one start of a program's loop: FOLDER/NAME/TIME.loop, and the lock on FOLDER/NAME/lock, which
// holds the name of the first.
#pragma once

#include <string>

namespace rtmeter {

class Start {
 public:
  // Makes the folder. Throws Failure if it cannot be made, or a loop of this name is open there already.
  Start(const std::string& folder, const std::string& name);
  ~Start();
  Start(const Start&) = delete;
  Start& operator=(const Start&) = delete;

  const std::string& path() const noexcept { return path_; }
  // Unless this is called the folder goes again.
  void keep() noexcept { kept_ = true; }
  // In a child of the process: lets go of the lock, which stays the parent's. Async-signal-safe.
  void disown() noexcept;

 private:
  int lock_;
  bool kept_ = false;
  std::string path_;
};

}  // namespace rtmeter
