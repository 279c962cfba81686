#include "log/crc32c.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace rtmeter {
namespace {

using Bytes = std::vector<std::uint8_t>;
using Function = std::uint32_t (*)(const void*, std::size_t, std::uint32_t) noexcept;

class Crc32c : public testing::TestWithParam<Function> {
 protected:
  static std::uint32_t of(const Bytes& bytes) { return GetParam()(bytes.data(), bytes.size(), 0); }
};

// RFC 3720, appendix B.4 (which prints them as bytes in the order of transmission).
TEST_P(Crc32c, GivesTheValuesOfRfc3720) {
  EXPECT_EQ(of(Bytes(32, 0x00)), 0x8A9136AAu);
  EXPECT_EQ(of(Bytes(32, 0xFF)), 0x62A8AB43u);
  Bytes ascending(32);
  std::iota(ascending.begin(), ascending.end(), std::uint8_t{0});
  EXPECT_EQ(of(ascending), 0x46DD794Eu);
  EXPECT_EQ(of(Bytes(ascending.rbegin(), ascending.rend())), 0x113FDB5Cu);
  const Bytes iscsi_read = {0x01, 0xc0, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
                            0x00, 0x00, 0x00, 0x00, 0x14, 0x00, 0x00, 0x00, 0x00, 0x00, 0x04, 0x00,
                            0x00, 0x00, 0x00, 0x14, 0x00, 0x00, 0x00, 0x18, 0x28, 0x00, 0x00, 0x00,
                            0x00, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00};
  EXPECT_EQ(of(iscsi_read), 0xD9963A56u);
}

TEST_P(Crc32c, GivesTheCheckValueAndZeroForNothing) {
  const std::string digits = "123456789";
  EXPECT_EQ(of(Bytes(digits.begin(), digits.end())), 0xE3069283u);
  EXPECT_EQ(of({}), 0u);
}

TEST_P(Crc32c, GoesOnFromAnEarlierPart) {
  const std::string digits = "123456789";
  for (std::size_t cut = 0; cut <= digits.size(); ++cut) {
    const std::uint32_t first = GetParam()(digits.data(), cut, 0);
    EXPECT_EQ(GetParam()(digits.data() + cut, digits.size() - cut, first), 0xE3069283u) << cut;
  }
}

INSTANTIATE_TEST_SUITE_P(Both, Crc32c, testing::Values(&crc32c, &crc32c_portable));

TEST(Crc32cDispatch, AgreesWithTheTableAtEveryLengthAndAlignment) {
  std::mt19937 random(1);
  Bytes bytes((4u << 20) + 16);
  for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random());
  for (std::size_t offset = 0; offset < 8; ++offset) {
    for (std::size_t length = 0; length < 200; ++length) {
      const std::uint8_t* at = bytes.data() + offset;
      ASSERT_EQ(crc32c(at, length), crc32c_portable(at, length)) << offset << " " << length;
    }
  }
  EXPECT_EQ(crc32c(bytes.data(), bytes.size()), crc32c_portable(bytes.data(), bytes.size()));
}

}  // namespace
}  // namespace rtmeter
