// Runs trainer export.
#include "tests/cli/trainer.h"

namespace millrace::testing {
namespace {

class Export : public TrainerOnData {};

TEST_F(Export, WritesModelAndCertificate) {
  successful(trainer(
      on(data_, {"run", "--out", in_folder("runs")}, kTrainOnly + Words{"train.max_steps=1"})));
  const auto model = in_folder("model.onnx");
  const auto out =
      successful(trainer({"export", in_folder("runs") / "maskrcnn-1", "--out", model}));
  EXPECT_THAT(out.out, AllOf(HasSubstr("model.onnx\n"), HasSubstr("model.certificate.json\n")));
  const auto certificate = read_json(in_folder("model.certificate.json"));
  EXPECT_EQ(certificate["cases"].size(), 4U);  // of the validation split
  // If onnxruntime is missing, nothing is compared, and the exit code is not that of a failed
  // comparison.
  EXPECT_EQ(trainer({"export", "--check", model, "--python", "/usr/bin/false"}).exit_code, 2);
  // A modified file is not run.
  write_text(model, read_text(model) + " ");
  expect_error(trainer({"export", "--check", model}), 1, "model.onnx");
}

TEST_F(Export, RejectsMissingArguments) {
  expect_error(trainer({"export"}), 2, "--check FILE");
  expect_error(trainer({"export", "run", "--out", "model.pb"}), 2, "model.pb");
  expect_error(trainer({"export", "--check", in_folder("none.onnx")}), 1, "none.certificate.json");
}

}  // namespace
}  // namespace millrace::testing
