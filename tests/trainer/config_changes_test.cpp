// Configuration changes that a resumed run accepts or rejects.
#include "millrace/trainer/run/config_changes.h"

#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>

#include "millrace/base/errors.h"
#include "millrace/models/detector/restore.h"
#include "tests/support/fake_training.h"

namespace millrace::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr auto kConfig = R"([data]
root = "here"
train = "train"
[model]
type = "line"
width = 16
[optimizer]
type = "sgd"
[train]
seed = 1
epochs = 3
)";

/// Returns kConfig with one line replaced.
std::string with(const std::string& line, const std::string& other) {
  std::string text = kConfig;
  return text.replace(text.find(line), line.size(), other);
}

struct Resuming {
  LineDetector model;
  Checkpoint checkpoint{
      .epoch_size = 10, .classes = {"a", "b"}, .model = named_values(model), .config = kConfig};
  std::string config = kConfig;
  std::vector<std::string> classes = {"a", "b"};
  std::int64_t epoch_size = 10;

  void operator()() const {
    check_resume(checkpoint, {.config = parse_config(config, "now.toml"),
                              .classes = classes,
                              .epoch_size = epoch_size,
                              .model = model});
  }
};

TEST(ConfigChanges, ListDifferencesByKey) {
  const auto changes =
      config_changes(parse_config("b = 1\nsame = 2\n[t]\nx = [1, 2]\ngone = 'g'\n", "was"),
                     parse_config("b = 1.5\nsame = 2\nnew = true\n[t]\nx = [1, 3]\n", "is.toml"));
  std::vector<std::string> lines;
  for (const auto& change : changes)
    lines.push_back(change.key + ": " + change.was + " -> " + change.is);
  EXPECT_THAT(lines, ::testing::ElementsAre("b: 1 -> 1.5", "new: nothing -> true",
                                            "t.gone: \"g\" -> nothing", "t.x: [1, 2] -> [1, 3]"));
  EXPECT_EQ(changes[0].origin.text(), "is.toml:1:5");
}

TEST(ConfigChanges, AllowNewLengthAndOldCheckpoints) {
  Resuming resume;
  resume();
  resume.config = with("epochs = 3", "epochs = 30\nprecision = 'fp16'");
  resume();
  resume.checkpoint.classes.clear();
  resume.checkpoint.epoch_size = 0;
  resume.checkpoint.config = "";
  resume.epoch_size = 77;
  resume();
}

TEST(ConfigChanges, RejectIncompatibleKeys) {
  const auto refused = [](const std::function<void(Resuming&)>& change, const auto&... parts) {
    Resuming resume;
    change(resume);
    EXPECT_THAT([&] { resume(); },
                ThrowsMessage<ConfigError>(AllOf(HasSubstr(parts)..., HasSubstr("--resume"))));
  };
  refused([](auto& r) { r.config = with("type = \"line\"", "type = \"curve\""); },
          "now.toml:5:8: model.type: ", "\"line\"", "\"curve\"");
  refused([](auto& r) { r.config = with("seed = 1", "seed = 2"); }, "train.seed: was 1, is 2");
  refused([](auto& r) { r.config = with("\"sgd\"", "\"adamw\""); },
          "optimizer.type: was \"sgd\", is \"adamw\"");
  refused(
      [](auto& r) {
        r.classes = {"a", "c"};
      },
      "data.classes", R"(["a", "b"])", R"(["a", "c"])");
  refused(
      [](auto& r) {
        r.config = with("\"here\"", "\"there\"");
        r();  // data copied to another folder
        r.epoch_size = 11;
      },
      "data.root: was \"here\", is \"there\"", "10 samples", "11");
  refused([](auto& r) { r.epoch_size = 11; }, "data.root", "10 samples", "11");
  refused(
      [](auto& r) {
        r.config = with("width = 16", "width = 32");
        r.checkpoint.model[0].second = at::zeros({4});
      },
      "model.width: was 16, is 32", "'line.weight'", "[4]");
  refused([](auto& r) { r.checkpoint.model[0].first = "renamed"; }, "'line.weight'");
}

}  // namespace
}  // namespace millrace::testing
