// The examples, built from the installed package alone, as a newcomer does.
#include "tests/install/installed.h"

namespace millrace::testing {
namespace {

using ::testing::HasSubstr;

class Examples : public Installed {
 protected:
  /// Builds an example and runs its own test; `trainer list` then shows `brings` to come from it.
  void build_and_run(const std::string& name, const std::string& kind, const std::string& brings) {
    const auto done = build_example(name);
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
    ADD_FAILURE() << brings << " is not among the " << kind;
  }
};

TEST_F(Examples, CallbackAnnouncesTheBestFigure) {
  build_and_run("my_callback", "callbacks", "announce_best");
  EXPECT_THAT(read_text(built("my_callback") / "runs/config-1/best.txt"),
              HasSubstr("step 2: bbox/AP "));
}

TEST_F(Examples, StageTrains) { build_and_run("my_stage", "stages", "cutout"); }

TEST_F(Examples, DetectorTrainsAndDetects) { build_and_run("my_detector", "detectors", "centers"); }

TEST_F(Examples, BuiltAgainstOtherHeadersAreRefused) {
  const auto build_id = prefix() / "include/millrace/plugins/build_id.h";
  auto text = read_text(build_id);
  const std::string release = "#define MILLRACE_RELEASE \"";
  const auto at = text.find(release);
  ASSERT_NE(at, std::string::npos);
  text.insert(at + release.size(), "9.");
  write_text(build_id, text);
  const auto done = build_example("my_stage");
  ASSERT_EQ(done.exit_code, 0) << done.out << done.err;
  expect_error(installed({"list", "--plugin", (built("my_stage") / "my_stage.so").string()}), 2,
               "it was built with Millrace 9.");
}

TEST_F(Examples, MayUseEveryPublicHeader) {
  fs::create_directory(in_folder("all"));
  const auto headers = prefix() / "include/millrace";
  std::string includes;
  for (const auto& entry : fs::recursive_directory_iterator(headers))
    if (entry.path().extension() == ".h")
      includes += "#include \"" + fs::relative(entry.path(), headers).string() + "\"\n";
  write_text(in_folder("all/all.cpp"), includes);
  write_text(in_folder("all/CMakeLists.txt"),
             "cmake_minimum_required(VERSION 3.21)\nproject(all LANGUAGES CXX)\n"
             "find_package(millrace REQUIRED)\nmillrace_add_plugin(all SOURCES all.cpp)\n");
  const auto prefix_path = "-DCMAKE_PREFIX_PATH=" + prefix().string();
  const auto build = in_folder("all/build").string();
  const auto configured = run(CMAKE, {"-S", in_folder("all").string(), "-B", build, prefix_path});
  ASSERT_EQ(configured.exit_code, 0) << configured.err;
  const auto done = run(CMAKE, {"--build", build});
  EXPECT_EQ(done.exit_code, 0) << done.out << done.err;
  EXPECT_EQ(installed({"list", "--plugin", build + "/all.so"}).exit_code, 0);
}

}  // namespace
}  // namespace millrace::testing
