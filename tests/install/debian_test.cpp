// The Debian package of `make deb`.
#include <sys/stat.h>

#include "tests/cli/trainer.h"

namespace millrace::testing {
namespace {

/// The package, built once for all tests and unpacked.
class Debian : public Trainer {
 protected:
  static void SetUpTestSuite() {
    if (!fs::exists("/usr/bin/dpkg-deb")) return;
    made_ = std::make_unique<Scratch>();
    const auto& folder = made_->path();
    const auto line = "cpack --config" + quoted({fs::path(MILLRACE_BUILD) / "CPackConfig.cmake"}) +
                      " -B" + quoted({folder}) + " >" + quoted({folder / "log"}) +
                      " 2>&1 && dpkg-deb --extract" + quoted({folder}) + "/*.deb" +
                      quoted({folder / "root"});
    ASSERT_EQ(std::system(line.c_str()), 0) << read_text(folder / "log");
  }
  static void TearDownTestSuite() { made_.reset(); }

  void SetUp() override {
    if (!made_) GTEST_SKIP() << "dpkg-deb is not installed";
  }

  static fs::path usr() { return made_->path() / "root/usr"; }

  static fs::path file() {
    for (const auto& entry : fs::directory_iterator(made_->path()))
      if (entry.path().extension() == ".deb") return entry.path();
    return {};
  }

  std::string field(const std::string& name) const {
    return successful(run("/usr/bin/dpkg-deb", {"--field", file(), name})).out;
  }

 private:
  static inline std::unique_ptr<Scratch> made_;
};

TEST_F(Debian, DependsOnLibrariesExceptLibtorch) {
  EXPECT_EQ(field("Package"), "millrace\n");
  const auto needs = field("Depends");
  for (const auto* package : {"libc6", "libopenmpi3", "libtbb12", "libturbojpeg0"})
    EXPECT_THAT(needs, HasSubstr(package));
  EXPECT_THAT(needs, Not(HasSubstr("torch")));
}

TEST_F(Debian, ContainsManPageCompletionsAndSchema) {
  for (const auto* name :
       {"bin/trainer", "bin/trainer-torch", "lib/millrace/image_readers.so",
        "share/man/man1/trainer.1.gz", "share/bash-completion/completions/trainer",
        "share/zsh/vendor-completions/_trainer", "share/fish/vendor_completions.d/trainer.fish",
        "share/millrace/millrace.schema.json", "share/millrace/configs/maskrcnn.toml",
        "share/doc/millrace/copyright", "share/doc/millrace/changelog.gz"})
    EXPECT_TRUE(fs::exists(usr() / name)) << name;
  for (const auto* name : {"include", "lib/cmake", "share/zsh/site-functions"})
    EXPECT_FALSE(fs::exists(usr() / name)) << name;
}

TEST_F(Debian, ContainsNoLocalPath) {
  for (const auto& entry : fs::recursive_directory_iterator(usr())) {
    struct stat facts {};
    ASSERT_EQ(::lstat(entry.path().c_str(), &facts), 0);
    if (entry.is_symlink()) continue;
    EXPECT_EQ(facts.st_mode & 0022, 0U) << entry.path() << " is writable by others";
    if (!entry.is_regular_file()) continue;
    const auto text = read_text(entry.path());
    for (const auto& folder :
         {fs::current_path().string(), std::string(MILLRACE_BUILD), std::string(LIBTORCH)})
      EXPECT_EQ(text.find(folder), std::string::npos) << entry.path() << " contains " << folder;
  }
}

TEST_F(Debian, TrainsWithGivenLibtorch) {
  const auto program = (usr() / "bin/trainer").string();
  const auto given = "LIBTORCH=" + std::string(LIBTORCH);
  const auto call = [&](const Words& words) {
    return run("/usr/bin/env", Words{given, program} + words);
  };
  EXPECT_THAT(successful(call({"--version"})).out, HasSubstr(std::string(LIBTORCH) + "\n"));
  successful(
      call(with_settings({"run", usr() / "share/millrace/configs/maskrcnn.toml"},
                         Words{setting("data.root", make_data()), "data.short_side=96",
                               "data.max_side=160", "model.backbone.width=16", "train.max_steps=3",
                               setting("train.output", in_folder("runs"))} +
                             kTrainOnly)));
  EXPECT_TRUE(fs::exists(in_folder("runs") / "maskrcnn-1" / "checkpoints" / "step-000003"));
  expect_error(run("/usr/bin/env", {"-i", "PATH=/nowhere", program, "doctor", "x.toml"}), 1,
               "libtorch");
}

}  // namespace
}  // namespace millrace::testing
