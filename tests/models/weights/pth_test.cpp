#include "millrace/models/weights/formats.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>

#include "millrace/base/files.h"
#include "tests/models/weights/loader_fixtures.h"

namespace millrace {
namespace {

using testing::by_name;
using testing::expect_same;
using testing::kFixtures;
using testing::little_endian;
using testing::Scratch;
using testing::tensors_equal;
using testing::write_zip;

/// Returns the pickle of a string (opcode "X").
std::string text(const std::string& characters) {
  return "X" + little_endian(characters.size(), 4) + characters;
}

/// Returns the pickle of a tensor over the 6 floats of storage "0", with this offset, shape and
/// strides.
std::string tensor(const std::string& offset, const std::string& shape, const std::string& strides,
                   const std::string& storage = "FloatStorage") {
  return "ctorch._utils\n_rebuild_tensor_v2\n((" + text("storage") + "ctorch\n" + storage + "\n" +
         text("0") + text("cpu") + "K\x06tQ" + offset + shape + strides +
         "\x89"
         "ccollections\nOrderedDict\n)RtR";
}

/// Returns the pickle of a dict that contains one value, under the key "x".
std::string dict(const std::string& value) { return "\x80\x02}" + text("x") + value + "s."; }

const std::string kTwoByThree = tensor(std::string("K\0", 2), "K\x02K\x03\x86", "K\x03K\x01\x86");

class Pth : public ::testing::Test {
 protected:
  /// Writes a zip archive with this pickle and a storage of 6 floats; returns its path.
  std::filesystem::path archive(const std::string& pickle,
                                std::map<std::string, std::string> more = {}) {
    more.insert({{"a/data.pkl", pickle}, {"a/data/0", std::string(24, '\0')}});
    write_zip(scratch_ / "a.pth", more);
    return scratch_ / "a.pth";
  }

  const Scratch scratch_;
};

TEST_F(Pth, ReadsEveryTorchFileFormat) {
  const auto zip = by_name(read_pth(kFixtures / "zip.pth"));
  EXPECT_EQ(zip.size(), 14U);
  auto fp32 = by_name(read_safetensors(kFixtures / "fp32.safetensors"));
  expect_same(read_pth(kFixtures / "zip.pth"), fp32);
  expect_same(read_pth(kFixtures / "checkpoint.pth"), fp32);
  const auto wrapped = read_pth(kFixtures / "module_prefix.pth");
  EXPECT_EQ(wrapped.size(), 14U);
  for (const auto& [name, value] : wrapped)
    EXPECT_TRUE(tensors_equal(value, fp32.at(name.substr(std::string("module.").size())))) << name;

  const auto old = by_name(read_pth(kFixtures / "legacy.pth"));
  EXPECT_EQ(old.size(), 13U);
  EXPECT_TRUE(tensors_equal(old.at("rpn.head.conv.weight"), fp32.at("rpn.head.conv.0.0.weight")));
  EXPECT_TRUE(tensors_equal(old.at("backbone.body.bn1.bias"), fp32.at("backbone.body.bn1.bias")));
}

TEST_F(Pth, ReadsViewsSharedStoragesAndTypes) {
  expect_same(read_pth(kFixtures / "views.pth"),
              by_name(read_safetensors(kFixtures / "expected.safetensors")));
}

TEST_F(Pth, ReadsBackWrittenFile) {
  const auto all = read_safetensors(kFixtures / "expected.safetensors");
  write_pth(scratch_ / "a.pth", all);
  expect_same(read_pth(scratch_ / "a.pth"), by_name(all));
  write_pth(scratch_ / "b.pth", all);
  EXPECT_EQ(read_file(scratch_ / "a.pth"), read_file(scratch_ / "b.pth"));
}

TEST_F(Pth, ReadsPickledArrays) {
  const auto array = [](const std::string& type, const std::string& order,
                        const std::string& fortran = "\x89") {
    return "cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\nK" + std::string("\0", 1) +
           "\x85"
           "C\x01"
           "btR(K\x01K\x02K\x02\x86"
           "cnumpy\ndtype\n(" +
           text(type) + "\x89\x88tR(K\x03" + text(order) +
           "NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK" + std::string("\0", 1) + "tb" + fortran +
           "C\x08" + std::string("\1\0\2\0\3\0\4\0", 8) + "tb";
  };
  const auto good = dict(array("i2", "<"));
  const auto file = scratch_.file("a.pkl", good);
  const auto read = read_pth(file);
  ASSERT_EQ(read.size(), 1U);
  const auto counted = (at::arange(4, at::kShort) + 1).view({2, 2});
  EXPECT_TRUE(tensors_equal(read[0].second, counted));
  const auto turned = scratch_.file("fortran.pkl", dict(array("i2", "<", "\x88")));
  EXPECT_TRUE(tensors_equal(read_pth(turned).at(0).second, counted.t()));

  const auto refused = [&](const std::string& from, const std::string& to, const char* why) {
    auto bad = good;
    bad.replace(bad.find(from), from.size(), to);
    const auto bad_file = scratch_.file("b.pkl", bad);
    MILLRACE_EXPECT_ERROR(read_pth(bad_file), bad_file, why);
  };
  refused(text("<"), text(">"), "big-endian");
  refused("i2", "O8", "unknown type 'O8'");
  refused("i2", "i4", "match");
  refused("C\x08", "C\x07", "");
}

TEST_F(Pth, RunsNoPickledCode) {
  const auto marker = scratch_ / "was_run";
  const auto command = "touch " + marker.string();
  for (const auto& [pickle, name] : std::map<std::string, std::string>{
           {"\x80\x02"
            "cos\nsystem\n(" +
                text(command) + "tR.",
            "os.system"},
           {"\x80\x04" + text("posix") + text("system") + "\x93" + text(command) + "\x85R.",
            "posix.system"},
           {"\x80\x02"
            "cbuiltins\neval\n(" +
                text("1") + "tR.",
            "builtins.eval"},
           {dict("c__main__\nModel\n)\x81}b"), "__main__.Model"}}) {
    for (const auto& file : {archive(pickle), scratch_.file("a.pkl", pickle)}) {
      MILLRACE_EXPECT_ERROR(read_pth(file), file, "'" + name + "'");
      MILLRACE_EXPECT_ERROR(read_pth(file), file, "pickle at byte ");
    }
  }
  EXPECT_FALSE(std::filesystem::exists(marker));
}

TEST_F(Pth, ReportsInvalidTensors) {
  const std::string zero("K\0", 2), one = "K\x01", shape = "K\x02K\x03\x86",
                                    strides = "K\x03K\x01\x86";
  const std::string huge = "\x8a\x08" + std::string("\0\0\0\0\0\0\0\x7f", 8);
  for (const auto& [value, why] : std::map<std::string, std::string>{
           {tensor(one, shape, strides), "storage of 6 values"},
           {tensor(zero, shape, "K\x04K\x01\x86"), "storage of"},
           {tensor(zero, shape, "K\x03\x85"), "1 stride"},
           {tensor(zero, "K\x09\x85", zero + "\x85"), "storage of"},
           {tensor(zero, huge + huge + "\x86", strides), "too large"},
           {tensor(zero, shape, huge + huge + "\x86"), "too large"},
           {tensor(huge, shape, strides), "storage of"},
           {tensor("J\xff\xff\xff\xff", shape, strides), "non-negative"},
           {tensor(zero, "N", strides), "16 numbers"},
           {tensor(zero, shape, strides, "DoubleStorage"), "24 bytes"},
           {"ctorch._utils\n_rebuild_tensor_v2\n)R", "torch's format"},
           {"ctorch._utils\n_rebuild_tensor_v2\n(NK\x01)" + std::string(")tR"),
            "torch's format"}}) {
    const auto file = archive(dict(value));
    MILLRACE_EXPECT_ERROR(read_pth(file), file, why);
    MILLRACE_EXPECT_ERROR(read_pth(file), file, "tensor 'x'");
  }
}

TEST_F(Pth, ReportsInvalidFiles) {
  auto file = archive("\x80\x02}.");
  MILLRACE_EXPECT_ERROR(read_pth(file), file, "keys: none");
  file = archive(dict("K\x01"));
  MILLRACE_EXPECT_ERROR(read_pth(file), file, "keys: x");
  file = archive("\x80\x02]q" + std::string("\0", 1) + "h" + std::string("\0", 1) + "a.");
  MILLRACE_EXPECT_ERROR(read_pth(file), file, "dict of tensors");
  file = archive(dict(kTwoByThree), {{"a/byteorder", "big"}});
  MILLRACE_EXPECT_ERROR(read_pth(file), file, "big-endian");
  write_zip(file, {{"word/document.xml", "hello"}});
  MILLRACE_EXPECT_ERROR(read_pth(file), file, "data.pkl");
  write_zip(file, {{"data.pkl", dict(kTwoByThree)}});
  MILLRACE_EXPECT_ERROR(read_pth(file), file, "'data/0'");
  write_safetensors(file, {{"a", at::arange(2)}});
  MILLRACE_EXPECT_ERROR(read_pth(file), file, ".safetensors");
  file = scratch_.file("old.pkl", "(dp0\nVx\np1\nI1\ns.");
  MILLRACE_EXPECT_ERROR(read_pth(file), file, "protocol 0");
  file =
      archive(dict("ctorch._utils\n_rebuild_tensor_v3\n(NK\x01))\x89Nctorch\nfloat8_e4m3fn\ntR"));
  MILLRACE_EXPECT_ERROR(read_pth(file), file, "'torch.float8_e4m3fn'");
  file = scratch_.file("png.pth", "\x89PNG\r\n");
  MILLRACE_EXPECT_ERROR(read_pth(file), file, "pickle");
  file = scratch_.file("none.pth", "");
  MILLRACE_EXPECT_ERROR(read_pth(file), file, "pickle");
  file = scratch_ / "missing.pth";
  MILLRACE_EXPECT_ERROR(read_pth(file), file, "cannot be opened");
}

TEST_F(Pth, SurvivesDeepAndCircularPickles) {
  const auto deep = [](const std::string& instruction) {
    std::string pickle = "\x80\x02)";
    for (int i = 0; i < 200000; ++i) pickle += instruction;
    return pickle + ".";
  };
  auto file = archive(deep("\x85"));
  MILLRACE_EXPECT_ERROR(read_pth(file), file, "dict of tensors");
  // A dict that contains itself as "model".
  file = archive("\x80\x02}q" + std::string("\0", 1) + text("model") + "h" + std::string("\0", 1) +
                 "s.");
  MILLRACE_EXPECT_ERROR(read_pth(file), file, "keys: model");
  // A list of pairs that is converted to a dict 1000 times.
  std::string again = "\x80\x02](";
  for (int i = 0; i < 1000; ++i) again += "NN\x86";
  again += "eq";
  again += '\0';
  again += "0]";
  for (int i = 0; i < 1000; ++i)
    again += "(ccollections\nOrderedDict\nh" + std::string("\0", 1) + "\x85Re";
  file = archive(again + ".");
  EXPECT_THROW(read_pth(file), Error);
}

TEST_F(Pth, RejectsZipBomb) {
  write_zip(scratch_ / "bomb.npz", {{"x.npy", std::string(64 << 20, '\0')}});
  const auto file = scratch_ / "bomb.npz";
  MILLRACE_EXPECT_ERROR(read_pth(file), file, "100 times");
}

TEST_F(Pth, RejectsEveryTruncation) {
  for (const char* name : {"views.pth", "legacy.pth"}) {
    const auto bytes = read_file(kFixtures / name);
    for (std::size_t size = 0; size < bytes.size(); size += size < 2000 ? 1 : 97)
      EXPECT_THROW(read_pth(scratch_.file("cut.pth", bytes.substr(0, size))), Error)
          << name << ", " << size << " of " << bytes.size() << " bytes";
  }
}

TEST_F(Pth, SurvivesDamagedBytes) {
  for (const char* name : {"views.pth", "legacy.pth", "checkpoint.pth"})
    testing::expect_no_crash(scratch_, read_file(kFixtures / name), read_pth,
                             [](Rng& rng) { return rng.below(2000); });
}

TEST_F(Pth, ReportsFlippedBitInTensor) {
  write_pth(scratch_ / "a.pth", {{"x", at::arange(5000, at::kFloat)}});
  auto bytes = read_file(scratch_ / "a.pth");
  bytes[bytes.size() / 2] ^= 1;
  const auto file = scratch_.file("damaged.pth", bytes);
  MILLRACE_EXPECT_ERROR(read_pth(file), file, "tensor 'x': checksum");
}

}  // namespace
}  // namespace millrace
