// Checks the contents of an installation, and that it can be moved.
#include "tests/install/installed.h"

namespace millrace::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Package = Installed;

TEST_F(Package, ContainsProgramsHeadersAndRecipes) {
  for (const auto* file : {"bin/trainer",
                           "bin/trainer-torch",
                           "bin/gpu_tests",
                           "include/millrace/trainer/callback.h",
                           "include/millrace/models/detector/detector.h",
                           "include/millrace/dataflow/detection/detection_stages.h",
                           "include/millrace/models/pyramid_detector.h",
                           "include/millrace/plugins/build_id.h",
                           "lib/cmake/millrace/millraceConfig.cmake",
                           "lib/cmake/millrace/millraceConfigVersion.cmake",
                           "share/millrace/configs/maskrcnn.toml",
                           "share/millrace/examples/my_stage/my_stage.cpp",
                           "share/millrace/millrace.schema.json",
                           "share/man/man1/trainer.1",
                           "share/bash-completion/completions/trainer",
                           "share/zsh/site-functions/_trainer",
                           "share/fish/vendor_completions.d/trainer.fish",
                           "share/doc/millrace/LICENSE",
                           "share/millrace/python/millrace/study/__main__.py",
                           "share/doc/millrace/docs/plugins.md"})
    EXPECT_TRUE(fs::exists(prefix() / file)) << file;
  for (const auto* file : {"include/millrace/cli", "include/millrace/tests", "millrace"})
    EXPECT_FALSE(fs::exists(prefix() / file)) << file;
}

TEST_F(Package, BuildIdDependsOnDeclarations) {
  fs::create_directory(in_folder("first"));
  fs::create_directory(in_folder("second"));
  const auto build_id = [&](const std::string& header, const std::string& folder = "second") {
    write_text(in_folder("second/a.h"), "int a();\n");
    write_text(in_folder(folder) / "b.h", header);
    const auto out = in_folder("build_id.h");
    const auto made =
        run(CMAKE, {"-DTEMPLATE=" + fs::absolute("plugins/build_id.h.in").string(),
                    "-DOUT=" + out.string(), "-DRELEASE=1.2",
                    "-DROOTS=" + in_folder("first").string() + "|" + in_folder("second").string(),
                    "-DHEADERS=a.h b.h", "-P", "cmake/build_id.cmake"});
    EXPECT_EQ(made.exit_code, 0) << made.err;
    return read_text(out);
  };
  const auto first = build_id("int b();\n");
  EXPECT_THAT(first, HasSubstr("#define MILLRACE_RELEASE \"1.2\""));
  EXPECT_EQ(build_id("int b();\n"), first);
  EXPECT_EQ(build_id("/// An edited sentence; see [c].\nint b();  // and another\n"), first);
  EXPECT_EQ(build_id("int\n  /* of what? */ b();\n"), first);
  EXPECT_NE(build_id("int b(int);\n"), first);
  EXPECT_EQ(build_id("int b();\n"), first);
  EXPECT_NE(build_id("int b(float);\n", "first"), first);
}

TEST_F(Package, PagesHaveValidLinks) {
  const auto checked =
      run(fs::absolute("scripts/check_links.py"), {(prefix() / "share/doc/millrace").string()});
  EXPECT_EQ(checked.exit_code, 0) << checked.out;
  EXPECT_THAT(read_text(prefix() / "share/doc/millrace/docs/plugins.md"),
              HasSubstr("(../../../../include/millrace/trainer/callback.h)"));
}

TEST_F(Package, ContainsNoRepositoryPath) {
  for (const auto* file : {"millraceConfig.cmake", "millraceTargets.cmake", "add_plugin.cmake"}) {
    const auto text = read_text(prefix() / "lib/cmake/millrace" / file);
    EXPECT_NE(text, "");
    EXPECT_THAT(text, Not(HasSubstr(std::string(MILLRACE_BUILD)))) << file;
  }
}

TEST_F(Package, RunsAfterMove) {
  fs::rename(prefix(), in_folder("moved"));
  const auto config = in_folder("moved/share/millrace/configs/maskrcnn.toml").string();
  const auto resolved = run(in_folder("moved/bin/trainer"), {"config", config});
  EXPECT_EQ(resolved.exit_code, 0) << resolved.err;
  EXPECT_THAT(resolved.out, HasSubstr("type = \"maskrcnn\""));
}

TEST_F(Package, RunsPythonCommands) {
  fs::rename(prefix(), in_folder("moved"));
  const auto trainer = in_folder("moved/bin/trainer");
  const auto folder = in_folder("moved/bin").string();
  expect_error(run(trainer, {"diff", folder, folder}), 1, folder);
  expect_error(run(trainer, {"study", folder}), 2, folder);
}

TEST_F(Package, RunsGpuTests) {
  const auto end = installed({"check-gpu", "--small", "--device", "other", "--plugin",
                              OTHER_DEVICE_PLUGIN, "--", "--gtest_filter=Tools.*"});
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.out, HasSubstr("[       OK ] Tools."));
}

TEST_F(Package, FindsPluginsInOwnFolder) {
  const auto folder = prefix() / "lib/millrace/plugins";
  fs::create_directories(folder);
  fs::copy(prefix() / "bin/trainer", folder / "no_plugin.so");
  expect_error(installed({"list", "--plugin", "no_plugin.so"}), 2, "'no_plugin.so'");
  expect_error(installed({"list", "--plugin", "absent.so"}), 2, (folder / "absent.so").string());
}

}  // namespace
}  // namespace millrace::testing
