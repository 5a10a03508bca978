// The examples, built from the installed package alone.
#include "tests/install/installed.h"
#include "tests/support/json_lines.h"

namespace millrace::testing {
namespace {

using ::testing::HasSubstr;

class Examples : public Installed {
 protected:
  /// Builds an example and runs its own test; `trainer list` must then show that the plug-in
  /// provides the component `brings`.
  void build_and_run(const std::string& name, const std::string& kind, const std::string& brings) {
    const auto done = build_copy(fs::path("examples") / name);
    ASSERT_EQ(done.exit_code, 0) << done.out << done.err;
    const auto tested = run(CTEST, {"--test-dir", built(name).string(), "--output-on-failure"});
    EXPECT_EQ(tested.exit_code, 0) << tested.out;
    const auto plugin = (built(name) / (name + ".so")).string();
    const auto list = installed({"list", "--json", "--plugin", plugin}).json();
    for (const auto& entry : list[kind])
      if (entry["name"] == brings) {
        EXPECT_EQ(entry["plugin"], plugin);
        return;
      }
    ADD_FAILURE() << brings << " not found in " << kind;
  }
};

TEST_F(Examples, CallbackAnnouncesBestScore) {
  build_and_run("my_callback", "callbacks", "announce_best");
  EXPECT_THAT(read_text(built("my_callback") / "runs/config-1/best.txt"),
              HasSubstr("step 2: bbox/AP "));
}

TEST_F(Examples, StageRunsInTraining) { build_and_run("my_stage", "stages", "cutout"); }

TEST_F(Examples, DetectorOverfitsTwoImages) {
  build_and_run("my_detector", "detectors", "centers");
  const auto data = in_folder("two").string();
  ASSERT_EQ(installed({"sample", "--out", data, "--train", "2", "--val", "1"}).exit_code, 0);
  std::vector<std::string> arguments = {
      "run",   (in_folder("my_detector") / "config.toml").string(),
      "--out", in_folder("runs").string(),
      "--set", "data.root=\"" + data + "\""};
  for (const std::string setting :
       {"data.val=train2017", "data.batch_size=2", "data.flip=0.0", "data.aspect_grouping=false",
        "data.short_side=128", "data.max_side=192", "data.test_short_side=0",
        "data.test_max_side=0", "train.epochs=120", "schedule.warmup=20 steps",
        "callbacks.evaluate.every=120 epochs", "callbacks.checkpoint.enabled=false",
        "callbacks.pictures.enabled=false"})
    arguments.insert(arguments.end(), {"--set", setting});
  const auto trained = installed(arguments);
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  double ap = 0;
  for (const auto& line : json_lines(in_folder("runs/config-1/metrics.jsonl")))
    ap = line.value("bbox/AP", ap);
  EXPECT_GT(ap, 0.8);
}

TEST_F(Examples, PublicHeadersCompileAlone) {
  fs::create_directory(in_folder("headers"));
  std::string sources;
  int number = 0;
  for (const auto& entry : fs::recursive_directory_iterator(prefix() / "include")) {
    if (!entry.is_regular_file()) continue;
    const auto name = "header_" + std::to_string(++number) + ".cpp";
    write_text(in_folder("headers") / name,
               "#include <" + fs::relative(entry.path(), prefix() / "include").string() + ">\n");
    sources += " " + name;
  }
  write_text(in_folder("headers/CMakeLists.txt"),
             "cmake_minimum_required(VERSION 3.21)\nproject(headers LANGUAGES CXX)\n"
             "find_package(millrace REQUIRED)\nmillrace_add_plugin(headers SOURCES" +
                 sources + ")\n");
  const auto done = configure_and_build("headers");
  ASSERT_EQ(done.exit_code, 0) << done.out << done.err;
  const auto plugin = (built("headers") / "headers.so").string();
  EXPECT_EQ(installed({"list", "--plugin", plugin}).exit_code, 0);
}

// Edits a header: in the installation, and in a copy earlier in the include path.
TEST_F(Examples, RejectPluginBuiltFromDifferentHeaders) {
  const auto header = prefix() / "include/millrace/dataflow/detection/transforms.h";
  const auto original = read_text(header);
  const auto expect_refused = [&](const fs::path& edited) {
    write_text(edited, original + "struct AddedByHand {};\n");
    const auto done = run(CMAKE, {"--build", built("my_stage").string()});
    ASSERT_EQ(done.exit_code, 0) << done.out << done.err;
    expect_error(installed({"list", "--plugin", (built("my_stage") / "my_stage.so").string()}), 2,
                 "public headers");
  };
  const auto done = build_copy("examples/my_stage");
  ASSERT_EQ(done.exit_code, 0) << done.out << done.err;
  const auto plugin = (built("my_stage") / "my_stage.so").string();
  EXPECT_EQ(installed({"list", "--plugin", plugin}).exit_code, 0);
  expect_refused(header);
  write_text(header, original);
  fs::create_directories(in_folder("my_stage") / "millrace/dataflow/detection");
  expect_refused(in_folder("my_stage") / "millrace/dataflow/detection/transforms.h");
}

}  // namespace
}  // namespace millrace::testing
