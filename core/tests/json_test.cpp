#include "json/json.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>

#include "errors.hpp"

namespace rtmeter {
namespace {

Json parse(const std::string& text) { return Json::parse(text, "config.json"); }

// What the parser says of a text that is no JSON.
std::string complaint(const std::string& text) {
  try {
    return "accepted: " + parse(text).dump();
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.field(), "config.json");
    EXPECT_FALSE(failure.remedy().empty());
    return failure.what();
  }
}

TEST(JsonText, KeepsValuesAndTheirOrder) {
  const std::string text =
      R"({"z":null,"a":[true,false,[],{}],"i":-9223372036854775808,"u":9223372036854775807,"d":0.1,"s":"x"})";
  EXPECT_EQ(parse(text).dump(), text);
  EXPECT_EQ(parse(" { \"a\"\n:\t[ 1 , 2 ] }\r\n").dump(), R"({"a":[1,2]})");
}

TEST(JsonText, TellsIntegersFromDoubles) {
  EXPECT_TRUE(parse("-0").is_int());
  EXPECT_TRUE(parse("9223372036854775807").is_int());
  EXPECT_FALSE(parse("9223372036854775808").is_int());
  EXPECT_DOUBLE_EQ(parse("9223372036854775808").as_number(), 9223372036854775808.0);
  EXPECT_FALSE(parse("1.0").is_int());
  EXPECT_FALSE(parse("1e3").is_int());
  EXPECT_DOUBLE_EQ(parse("-1.25E-2").as_number(), -0.0125);
  EXPECT_DOUBLE_EQ(parse("7").as_number(), 7.0);
}

TEST(JsonText, WritesDoublesSoThatTheyReadBackTheSame) {
  for (const double d : {0.1, 1.0, -3.0, 1e300, 5e-324, 1.0 / 3.0, std::numeric_limits<double>::max()}) {
    const Json back = parse(Json(d).dump());
    EXPECT_FALSE(back.is_int());
    EXPECT_EQ(back.as_number(), d);
  }
  EXPECT_EQ(Json(std::numeric_limits<double>::quiet_NaN()).dump(), "null");
  EXPECT_EQ(Json(std::numeric_limits<double>::infinity()).dump(), "null");
}

TEST(JsonText, ReadsEscapesAndPassesUtf8Through) {
  EXPECT_EQ(parse(R"("\"\\\/\b\f\n\r\t\u0041\u00e9\u20ac\ud83d\ude00")").as_string(), "\"\\/\b\f\n\r\tAé€😀");
  EXPECT_EQ(Json("Aé€😀").dump(), "\"Aé€😀\"");
  EXPECT_EQ(parse(R"("\u0000")").as_string(), std::string(1, '\0'));
}

TEST(JsonText, EscapesWhatMustBeAndReplacesWhatIsNotUtf8) {
  EXPECT_EQ(Json("a\"b\\c\n\x01\x7f").dump(), R"("a\"b\\c\u000a\u0001\u007f")");
  EXPECT_EQ(Json("a\xff\xc3").dump(), "\"a\xEF\xBF\xBD\xEF\xBF\xBD\"");
  EXPECT_EQ(Json("\xed\xa0\x80").dump(), "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");  // a surrogate
}

TEST(JsonText, NamesLineAndColumnOfAMistake) {
  EXPECT_EQ(complaint("{\n  \"a\": 1,\n  \"b\" 2\n}"), "line 3, column 7: expected ':' behind the key \"b\"");
  EXPECT_EQ(complaint("{\"a\":1,\"a\":2}"), "line 1, column 11: the key \"a\" is there twice");
  EXPECT_EQ(complaint("[1 2]"), "line 1, column 4: expected ',' or ']'");
  EXPECT_EQ(complaint("1 x"), "line 1, column 3: text behind the end of the value");
}

TEST(JsonText, RefusesWhatIsNotJson) {
  for (const char* text : {"",
                           " ",
                           "{",
                           "[",
                           "[1,]",
                           "{\"a\":1,}",
                           "{a:1}",
                           "'a'",
                           "nul",
                           "+1",
                           "01",
                           "-",
                           "1.",
                           ".5",
                           "1e",
                           "0x10",
                           "NaN",
                           "1e999",
                           "\"a",
                           "\"\n\"",
                           "\"\\x\"",
                           "\"\\",
                           "\"\\u12",
                           "\"\\u12g4\"",
                           "\"\\ud800\"",
                           "\"\\udc00\"",
                           "\"\xff\"",
                           "\"\xc0\x80\"",
                           "\"\xe0",
                           "\"\\ud800\\u0041\"",
                           "\"\\u-001\"",
                           "\"\\u+001\"",
                           "[1]]",
                           "{\"a\"}",
                           "/**/1"}) {
    EXPECT_EQ(complaint(text).find("line "), 0u) << text << ": " << complaint(text);
  }
}

TEST(JsonText, LimitsTheDepth) {
  const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_EQ(parse(nested(64)).dump(), nested(64));
  EXPECT_NE(complaint(nested(66)).find("64 deep"), std::string::npos);
  EXPECT_NE(complaint(std::string(1'000'000, '[')).find("64 deep"), std::string::npos);
}

TEST(JsonAccess, RefusesAnotherType) {
  const auto message = [](auto access) -> std::string {
    try {
      access();
    } catch (const Failure& failure) {
      return failure.value() + ": " + failure.what();
    }
    return "accepted";
  };
  EXPECT_EQ(message([] { Json("1").as_int(); }), "\"1\": expected an integer");
  EXPECT_EQ(message([] { Json(1.5).as_int(); }), "1.5: expected an integer");
  EXPECT_EQ(message([] { Json(1).as_bool(); }), "1: expected true or false");
  EXPECT_EQ(message([] { Json().as_string(); }), "null: expected a string");
  EXPECT_EQ(message([] { Json(true).as_number(); }), "true: expected a number");
  EXPECT_EQ(message([] { Json::object().as_array(); }), "{}: expected a list");
  EXPECT_EQ(message([] { Json::array().as_object(); }), "[]: expected an object");
  EXPECT_EQ(message([] { Json(std::string(100, 'a')).as_int(); }).substr(0, 63),
            "\"" + std::string(59, 'a') + "…");
}

TEST(JsonAccess, BuildsAndFinds) {
  Json json = Json::object();
  json["a"] = 1;
  json["b"]["c"] = Json::array().push(1).push("x");
  json["a"] = 2;
  EXPECT_EQ(json.dump(), R"({"a":2,"b":{"c":[1,"x"]}})");
  ASSERT_NE(json.find("a"), nullptr);
  EXPECT_EQ(json.find("a")->as_int(), 2);
  EXPECT_EQ(json.find("x"), nullptr);
  EXPECT_EQ(Json(1).find("a"), nullptr);
  EXPECT_THROW(Json(1)["a"], Failure);
  EXPECT_THROW(Json("a").push(1), Failure);
}

}  // namespace
}  // namespace rtmeter
