// The writer must reproduce spec/golden/. RTMETER_WRITE_GOLDEN=1 writes the files anew instead.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <zstd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "golden_logs.hpp"

namespace rtmeter {
namespace {

using testing_help::file_content;

// Other versions of zstd may compress the same bytes into others.
constexpr unsigned kZstdOfGoldenFiles = 10504;

class Golden : public testing::TestWithParam<golden::Golden> {};

TEST_P(Golden, IsReproducedByTheWriter) {
  const std::string kept = std::string(RTMETER_SPEC_DIR) + "/golden/" + GetParam().name;
  const testing_help::TemporaryDirectory directory;
  const std::string made = directory / "made.rtlog";
  const std::string expected = GetParam().make(made).dump() + "\n";
  if (getenv("RTMETER_WRITE_GOLDEN") != nullptr) {
    std::filesystem::copy_file(made, kept + ".rtlog", std::filesystem::copy_options::overwrite_existing);
    std::ofstream(kept + ".json") << expected;
    GTEST_SKIP() << "written anew";
  }
  EXPECT_EQ(file_content(kept + ".json"), expected);
  if (ZSTD_versionNumber() == kZstdOfGoldenFiles) {
    EXPECT_EQ(file_content(kept + ".rtlog"), file_content(made));
  }
  const auto before = testing_help::read_sample_log(kept + ".rtlog");
  const auto now = testing_help::read_sample_log(made);
  EXPECT_EQ(now.head, before.head);
  ASSERT_EQ(now.kinds(), before.kinds());
  for (std::size_t i = 0; i < now.frames.size(); ++i) {
    EXPECT_EQ(now.frames[i].first_row, before.frames[i].first_row);
    EXPECT_EQ(now.frames[i].row_count, before.frames[i].row_count);
    EXPECT_EQ(now.frames[i].content, before.frames[i].content);
  }
}

INSTANTIATE_TEST_SUITE_P(Files, Golden, testing::ValuesIn(golden::all()), [](const auto& test) {
  std::string name = test.param.name;
  std::erase(name, '-');
  return name;
});

}  // namespace
}  // namespace rtmeter
