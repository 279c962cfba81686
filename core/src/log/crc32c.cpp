#include "log/crc32c.hpp"

#include <array>
#include <cstring>

#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace rtmeter {
namespace {

constexpr std::uint32_t kPolynomial = 0x82F63B78;  // 0x1EDC6F41 reflected

// kTables[t][b]: the checksum register after byte b and t zero bytes ("slicing by 8": Kounavis and
// Berry, "A systematic approach to building high performance software-based CRC generators", 2005).
constexpr auto kTables = [] {
  std::array<std::array<std::uint32_t, 256>, 8> tables{};
  for (std::uint32_t b = 0; b < 256; ++b) {
    std::uint32_t crc = b;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) * kPolynomial);
    tables[0][b] = crc;
  }
  for (std::size_t t = 1; t < 8; ++t) {
    for (std::size_t b = 0; b < 256; ++b) {
      const std::uint32_t crc = tables[t - 1][b];
      tables[t][b] = (crc >> 8) ^ tables[0][crc & 0xFF];
    }
  }
  return tables;
}();

// Runs the register over the bytes: whole words by word(crc, u64), the rest by byte(crc, u8).
template <typename Word, typename Byte>
inline std::uint32_t run(const void* data, std::size_t bytes, std::uint32_t crc, Word word, Byte byte) {
  const auto* at = static_cast<const std::uint8_t*>(data);
  crc = ~crc;
  for (; bytes >= 8; at += 8, bytes -= 8) {
    std::uint64_t w;
    std::memcpy(&w, at, 8);
    crc = word(crc, w);
  }
  for (; bytes > 0; ++at, --bytes) crc = byte(crc, *at);
  return ~crc;
}

#if defined(__x86_64__)

bool has_instruction() { return __builtin_cpu_supports("sse4.2"); }

std::uint32_t instruction_word(std::uint32_t crc, std::uint64_t word) {
  std::uint64_t wide = crc;
  asm("crc32q %1, %0" : "+r"(wide) : "r"(word));
  return static_cast<std::uint32_t>(wide);
}

std::uint32_t instruction_byte(std::uint32_t crc, std::uint8_t byte) {
  asm("crc32b %1, %0" : "+r"(crc) : "r"(byte));
  return crc;
}

#elif defined(__aarch64__)

bool has_instruction() { return (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0; }

std::uint32_t instruction_word(std::uint32_t crc, std::uint64_t word) {
  asm(".arch_extension crc\n\tcrc32cx %w0, %w0, %x1" : "+r"(crc) : "r"(word));
  return crc;
}

std::uint32_t instruction_byte(std::uint32_t crc, std::uint8_t byte) {
  asm(".arch_extension crc\n\tcrc32cb %w0, %w0, %w1" : "+r"(crc) : "r"(byte));
  return crc;
}

#endif

}  // namespace

std::uint32_t crc32c_portable(const void* data, std::size_t bytes, std::uint32_t crc) noexcept {
  static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the tables are applied to little-endian words");
  const auto word = [](std::uint32_t c, std::uint64_t w) {
    w ^= c;
    c = 0;
    for (std::size_t i = 0; i < 8; ++i) c ^= kTables[7 - i][w >> (8 * i) & 0xFF];
    return c;
  };
  const auto byte = [](std::uint32_t c, std::uint8_t b) { return (c >> 8) ^ kTables[0][(c ^ b) & 0xFF]; };
  return run(data, bytes, crc, word, byte);
}

std::uint32_t crc32c(const void* data, std::size_t bytes, std::uint32_t crc) noexcept {
#if defined(__x86_64__) || defined(__aarch64__)
  static const bool instruction = has_instruction();
  if (instruction) return run(data, bytes, crc, instruction_word, instruction_byte);
#endif
  return crc32c_portable(data, bytes, crc);
}

}  // namespace rtmeter
