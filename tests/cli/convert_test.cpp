// Runs trainer convert on files that torch has written, and loads its output with torch.
#include <ATen/ops/zeros.h>

#include "millrace/models/weights/formats.h"
#include "millrace/models/weights/model_card.h"
#include "tests/cli/trainer.h"
#include "tests/support/python.h"

namespace millrace::testing {
namespace {

const std::string kFixtures = "tests/parity/goldens/loader/";

class Convert : public Trainer {
 protected:
  Outcome convert(const fs::path& in, const std::string& out, const std::string& names = "") {
    return trainer(Words{"convert", in, in_folder(out)} +
                   (names.empty() ? Words{} : Words{"--names", names}));
  }

  void expect_same_bytes(const std::string& a, const std::string& b) {
    EXPECT_EQ(read_text(in_folder(a)), read_text(in_folder(b))) << a << " and " << b;
  }
};

TEST_F(Convert, KeepsWeightsInEveryFileFormat) {
  const auto first = successful(convert(kFixtures + "zip.pth", "a.safetensors"));
  EXPECT_THAT(first.out,
              AllOf(StartsWith(in_folder("a.safetensors").string()), HasSubstr("13 tensors"),
                    HasSubstr("2 classes"), HasSubstr("torchvision")));
  int number = 0;
  for (const auto* file :
       {"legacy.pth", "checkpoint.pth", "module_prefix.pth", "fp32.safetensors"}) {
    const auto out = std::to_string(++number) + ".safetensors";
    successful(convert(kFixtures + file, "b.pth"));
    successful(convert(in_folder("b.pth"), "b.npz"));
    successful(convert(in_folder("b.npz"), out));
    if (file == std::string("fp32.safetensors")) continue;  // its tensors are sorted by name
    expect_same_bytes("a.safetensors", out);
  }
}

TEST_F(Convert, KeepsBytesThroughOtherNamingSchemes) {
  for (const std::string names : {"torchvision-2019", "detectron2", "tensorpack"}) {
    const auto there = successful(convert(kFixtures + "zip.pth", "there.npz", names));
    const auto ours = successful(convert(in_folder("there.npz"), "ours.safetensors"));
    EXPECT_THAT(ours.out, HasSubstr(names + ")"));
    successful(convert(in_folder("ours.safetensors"), "again.npz", names));
    expect_same_bytes("there.npz", "again.npz");
  }
}

TEST_F(Convert, LoadsInTorchvisionWithStrict) {
  MILLRACE_NEEDS_PYTHON("torchvision");
  const std::string script = "tests/cli/torchvision_weights.py ";
  ASSERT_EQ(run_python(script + "make " + in_folder("").string()), 0);
  const auto check = [&](const std::string& file) {
    return run_python(script + "check " + in_folder("new.pth").string() + " " +
                      in_folder(file).string());
  };
  successful(convert(in_folder("new.pth"), "new.safetensors"));
  successful(convert(in_folder("old.pth"), "old.safetensors"));
  expect_same_bytes("new.safetensors", "old.safetensors");
  successful(convert(in_folder("new.safetensors"), "again.pth"));
  EXPECT_EQ(check("again.pth"), 0);

  successful(convert(in_folder("old.pth"), "detectron2.pth", "detectron2"));
  successful(convert(in_folder("detectron2.pth"), "tensorpack.npz", "tensorpack"));
  successful(convert(in_folder("tensorpack.npz"), "back.pth"));
  EXPECT_EQ(check("back.pth"), 0);
}

TEST_F(Convert, ReadsNumpyArraysOfEveryPickleProtocol) {
  MILLRACE_NEEDS_PYTHON("numpy");
  write_text(in_folder("make.py"), R"(import pickle, sys, numpy as np
body = "backbone.body."
arrays = {body + "a": np.arange(6, dtype="f4").reshape(2, 3), body + "b": np.float64(3), body + "c": np.arange(3, dtype="i8") - 1}
for protocol in range(2, 6):
    with open(f"{sys.argv[1]}/{protocol}.pkl", "wb") as file:
        pickle.dump({"model": arrays, "__author__": "an author"}, file, protocol)
)");
  ASSERT_EQ(run_python(in_folder("make.py").string() + " " + in_folder("").string()), 0);
  for (const std::string protocol : {"2", "3", "4", "5"}) {
    const auto done = successful(convert(in_folder(protocol + ".pkl"), protocol + ".safetensors"));
    EXPECT_THAT(done.out, HasSubstr("2 tensors"));
    expect_same_bytes("2.safetensors", protocol + ".safetensors");
  }
}

TEST_F(Convert, ReportsTensorsWithoutName) {
  const auto outcome = successful(convert(kFixtures + "zip.pth", "a.npz", "resnet"));
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("8 tensors"), HasSubstr("resnet"),
                                 HasSubstr("backbone.fpn.inner_blocks.0.0.weight")));
}

TEST_F(Convert, RejectsUnknownNames) {
  const NamedTensors others = {{"lm_head.weight", at::zeros({2})}};
  write_weights(in_folder("other.safetensors"), others);
  expect_error(convert(in_folder("other.safetensors"), "a.pth"), 1, "'lm_head.weight'");
  EXPECT_FALSE(fs::exists(in_folder("a.pth")));
  // With a model card, the names are a detector's own; no other naming scheme has them.
  write_weights(in_folder("card.safetensors"), others, to_metadata({.classes = {"cat"}}));
  successful(convert(in_folder("card.safetensors"), "a.pth"));
  EXPECT_EQ(read_weights(in_folder("a.pth")).at(0).first, "lm_head.weight");
  expect_error(convert(in_folder("card.safetensors"), "b.pth", "detectron2"), 1, "detectron2");
  EXPECT_FALSE(fs::exists(in_folder("b.pth")));
}

TEST_F(Convert, WritesNoFileIfUsedWrongly) {
  expect_error(convert(kFixtures + "zip.pth", "a.onnx"), 2, ".safetensors");
  expect_error(convert(kFixtures + "zip.pth", "a.pth", "detectron"), 2, "'detectron2'");
  expect_error(convert("nosuch.pth", "a.pth"), 1, "nosuch.pth");
  expect_error(convert(kFixtures + "zip.pth", "nosuch/a.pth"), 1, "nosuch/a.pth");
  expect_error(convert(kFixtures + "bf16.safetensors", "a.npz"), 1, "BFloat16");
  write_text(in_folder("evil.pth"),
             "\x80\x02"
             "cposix\nsystem\nX\x02\0\0\0ls\x85R.");
  expect_error(convert(in_folder("evil.pth"), "a.pth"), 1, "posix.system");
  EXPECT_FALSE(fs::exists(in_folder("a.pth")));
  EXPECT_FALSE(fs::exists(in_folder("a.npz")));
}

}  // namespace
}  // namespace millrace::testing
