#include "millrace/models/weights/safetensors.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include "millrace/base/files.h"
#include "tests/models/weights/loader_fixtures.h"

namespace millrace {
namespace {

using testing::by_name;
using testing::kFixtures;
using testing::little_endian;
using testing::tensors_equal;

struct Safetensors : ::testing::Test {
  const testing::Scratch scratch;
};

std::string bytes_of(const std::string& header, std::size_t data) {
  return little_endian(header.size(), 8) + header + std::string(data, '\x01');
}

NamedTensors one_of_each_type() {
  const auto values = at::arange(6, at::kFloat).view({2, 3}) - 2;
  NamedTensors tensors;
  for (const auto type : {at::kFloat, at::kHalf, at::kBFloat16, at::kDouble, at::kLong, at::kInt,
                          at::kShort, at::kChar, at::kByte, at::kBool})
    tensors.emplace_back(c10::toString(type), values.abs().to(type));
  tensors.emplace_back("transposed", values.t());
  tensors.emplace_back("scalar", at::full({}, 3.5));
  tensors.emplace_back("empty", at::zeros({0, 4}));
  tensors.emplace_back("with \"quotes\" and ünicode", values);
  return tensors;
}

TEST_F(Safetensors, ReadsBackWrittenFile) {
  const auto tensors = one_of_each_type();
  write_safetensors(scratch / "a.safetensors", tensors, {{"step", "12"}, {"note", "a\nb"}});

  Metadata metadata;
  testing::expect_same(read_safetensors(scratch / "a.safetensors", &metadata), by_name(tensors));
  EXPECT_EQ(metadata, (Metadata{{"note", "a\nb"}, {"step", "12"}}));
}

TEST_F(Safetensors, WritesEqualBytesForEqualTensors) {
  write_safetensors(scratch / "a", one_of_each_type());
  write_safetensors(scratch / "b", one_of_each_type());
  EXPECT_EQ(read_file(scratch / "a"), read_file(scratch / "b"));
}

TEST_F(Safetensors, WritesFileWithoutTensors) {
  write_safetensors(scratch / "none", {});
  EXPECT_TRUE(read_safetensors(scratch / "none").empty());
}

TEST_F(Safetensors, AlignsEveryTensor) {
  write_safetensors(scratch / "a",
                    {{"odd", at::zeros({3}, at::kByte)}, {"wide", at::zeros({2}, at::kDouble)}});
  EXPECT_EQ(read_safetensors(scratch / "a").front().first, "wide");
}

TEST_F(Safetensors, RejectsDuplicateNameWhenWriting) {
  const NamedTensors twice = {{"x", at::zeros({1})}, {"x", at::zeros({1})}};
  EXPECT_THROW(write_safetensors(scratch / "a", twice), Error);
}

TEST_F(Safetensors, ReadsFilesFromReferenceLibrary) {
  const auto fp32 = by_name(read_safetensors(kFixtures / "fp32.safetensors"));
  EXPECT_EQ(fp32.size(), 14U);
  for (const auto& [file, type] : {std::pair{"fp16", at::kHalf}, {"bf16", at::kBFloat16}}) {
    Metadata metadata;
    const auto rounded =
        read_safetensors(kFixtures / (std::string(file) + ".safetensors"), &metadata);
    EXPECT_EQ(metadata["note"], file);
    for (const auto& [name, tensor] : rounded) {
      const auto& exact = fp32.at(name);
      EXPECT_TRUE(tensors_equal(tensor, exact.is_floating_point() ? exact.to(type) : exact))
          << name;
    }
  }
}

TEST_F(Safetensors, ReadsViewsScalarsAndEmptyTensors) {
  const auto read = by_name(read_safetensors(kFixtures / "expected.safetensors"));
  const auto base = at::arange(24, at::kFloat).view({4, 6});
  EXPECT_TRUE(tensors_equal(read.at("transposed"), base.t()));
  EXPECT_TRUE(tensors_equal(read.at("shared_b"), base.slice(0, 1, 3)));
  EXPECT_TRUE(tensors_equal(read.at("strided"), base.slice(1, 0, 6, 2)));
  EXPECT_TRUE(tensors_equal(read.at("scalar"), at::full({}, 3.5)));
  EXPECT_TRUE(tensors_equal(read.at("empty"), at::zeros({0, 4})));
  EXPECT_TRUE(tensors_equal(read.at("b"), at::tensor({1, 0}).to(at::kBool)));
}

/// Returns the JSON header of a tensor "a" with this shape and these offsets.
std::string f32(const std::string& shape, const std::string& offsets) {
  return R"({"a": {"dtype": "F32", "shape": )" + shape + R"(, "data_offsets": )" + offsets + "}}";
}

struct Hostile {
  const char* why;
  std::string header;
  std::size_t data;
};

TEST_F(Safetensors, ReportsInvalidHeaders) {
  const auto two = [](const std::string& second) {
    return R"({"a": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]},
               "b": {"dtype": "U8", "shape": [4], "data_offsets": )" +
           second + "}}";
  };
  for (const auto& [why, header, data] : {
           Hostile{"JSON", "{\"a\":", 0},
           {"JSON", "[1, 2]", 0},
           {"JSON", "\xff\xfe", 0},
           {"tensor 'a'", R"({"a": 3})", 0},
           {"dtype", R"({"a": {"shape": [1], "data_offsets": [0, 4]}})", 4},
           {"shape", R"({"a": {"dtype": "F32", "data_offsets": [0, 4]}})", 4},
           {"data_offsets", R"({"a": {"dtype": "F32", "shape": [1]}})", 4},
           {"dtype", R"({"a": {"dtype": 32, "shape": [1], "data_offsets": [0, 4]}})", 4},
           {"unknown type 'F8_E4M3'",
            R"({"a": {"dtype": "F8_E4M3", "shape": [4], "data_offsets": [0, 4]}})", 4},
           {"its shape", f32("[-1]", "[0, 4]"), 4},
           {"its shape", f32("[1.5]", "[0, 4]"), 4},
           {"its shape", f32("[\"NaN\"]", "[0, 4]"), 4},
           {"its shape", f32("1", "[0, 4]"), 4},
           {"its offsets", f32("[1]", "[0]"), 4},
           {"its offsets", f32("[1]", "[-4, 0]"), 4},
           {"match", f32("[2]", "[0, 4]"), 4},
           {"match", f32("[1]", "[4, 0]"), 4},
           {"match", f32("[4611686018427387904, 4]", "[0, 0]"), 0},  // 2^62 x 4 x 4 bytes
           {"match", f32("[9223372036854775807, 3, 0]", "[0, 0]"), 0},
           {"match", f32("[18446744073709551615]", "[0, 0]"), 0},
           {"contains 4 bytes", f32("[2]", "[0, 8]"), 4},
           {"contains 5 bytes", f32("[1]", "[0, 4]"), 5},
           {"begins at byte 18446744073709551608",
            f32("[1]", "[18446744073709551608, 18446744073709551612]"), 4},
           {"begins at byte 2", two("[2, 6]"), 6},    // overlap
           {"begins at byte 8", two("[8, 12]"), 12},  // a gap
       }) {
    SCOPED_TRACE(header);
    const auto file = scratch.file("hostile", bytes_of(header, data));
    MILLRACE_EXPECT_ERROR(read_safetensors(file), file, why);
  }
}

TEST_F(Safetensors, ReportsUnreadableFiles) {
  std::filesystem::create_symlink("loop", scratch / "loop");
  for (const auto& [file, why] : std::vector<std::pair<std::filesystem::path, const char*>>{
           {scratch.file("png", "\x89PNG\r\n\x1a\n and more"), "safetensors"},
           {scratch.file("empty", ""), "0 bytes"},
           {scratch / "none", "cannot be opened"},
           {scratch / "loop", "cannot be opened"},
           {scratch / "", "regular file"}})
    MILLRACE_EXPECT_ERROR(read_safetensors(file), file, why);
}

TEST_F(Safetensors, RejectsEveryTruncation) {
  write_safetensors(scratch / "whole", one_of_each_type());
  const auto bytes = read_file(scratch / "whole");
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const auto cut = scratch.file("cut", std::string_view(bytes).substr(0, size));
    EXPECT_THROW(read_safetensors(cut), Error) << size << " of " << bytes.size() << " bytes";
  }
}

TEST_F(Safetensors, SurvivesDamagedBytes) {
  write_safetensors(scratch / "whole", one_of_each_type());
  const auto bytes = read_file(scratch / "whole");
  testing::expect_no_crash(
      scratch, bytes, [](const auto& file) { read_safetensors(file); },
      [&](Rng& rng) { return rng.below(bytes.size()); });
}

}  // namespace
}  // namespace millrace
