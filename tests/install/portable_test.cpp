// The package of `make package`, in a root folder with only the C and C++ runtimes.
#include <cstdlib>

#include "tests/cli/trainer.h"

namespace millrace::testing {
namespace {

constexpr std::uintmax_t kMostBytes = 60 << 20;
constexpr auto kConfig = "/package/share/millrace/configs/maskrcnn.toml";

/// The package, built once for all tests and unpacked into a root folder of its own.
class Portable : public Trainer {
 protected:
  static void SetUpTestSuite() {
    made_ = std::make_unique<Scratch>();
    const auto& folder = made_->path();
    const auto line = quoted({"scripts/package", MILLRACE_BUILD, folder / "file"}) + " >" +
                      quoted({folder / "log"}) + " 2>&1 && mkdir" + quoted({folder / "root"}) +
                      " && tar -C" + quoted({folder / "root"}) + " -xf" +
                      quoted({folder / "file"}) + "/*.tar.zst && mv" + quoted({folder / "root"}) +
                      "/millrace-*" + quoted({folder / "root/package"});
    ASSERT_EQ(std::system(line.c_str()), 0) << read_text(folder / "log");
    for (const auto* library :
         {"libc.so.6", "libm.so.6", "libdl.so.2", "librt.so.1", "libpthread.so.0", "libresolv.so.2",
          "libutil.so.1", "libstdc++.so.6", "libgcc_s.so.1"}) {
      fs::create_directories(root() / "lib");
      for (const auto* from : {"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64"})
        if (fs::exists(fs::path(from) / library))
          fs::copy_file(fs::path(from) / library, root() / "lib" / library,
                        fs::copy_options::overwrite_existing);
    }
    fs::create_directories(root() / "lib64");
    fs::copy_file("/lib64/ld-linux-x86-64.so.2", root() / "lib64/ld-linux-x86-64.so.2");
    for (const auto* folder_inside : {"proc", "dev", "tmp", "data", "torch"})
      fs::create_directories(root() / folder_inside);
  }
  static void TearDownTestSuite() { made_.reset(); }

  static fs::path root() { return made_->path() / "root"; }

  /// Runs the packaged `trainer` in the bare root, where the folder `data` of this test is mounted
  /// as /data and the build's libtorch as /torch.
  Outcome bare(const Words& arguments, const std::string& environment = "LIBTORCH=/torch",
               const Words& program = {"/package/bin/trainer"}) const {
    fs::create_directories(in_folder("data"));
    const auto mounted = [](const fs::path& from, const std::string& to) {
      return "mount --rbind" + quoted({from, root() / to}) + " && ";
    };
    const auto line = mounted("/proc", "proc") + mounted("/dev", "dev") +
                      mounted(in_folder("data"), "data") + mounted(LIBTORCH, "torch") +
                      "exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin OMP_NUM_THREADS=2 " +
                      environment + " chroot" + quoted(Words{root()} + program + arguments);
    return run("/usr/bin/unshare", {"--mount", "--map-root-user", "/bin/sh", "-c", line});
  }

  /// Returns a command with settings for a small, fast model on /data/set.
  static Words small(const Words& command, const Words& overrides = {}) {
    return with_settings(command,
                         Words{"data.root=/data/set", "data.short_side=96", "data.max_side=160",
                               "model.backbone.width=16", "train.output=/data/runs"} +
                             overrides);
  }

  /// Makes a folder that looks like a torch package of this version.
  static void make_torch(const fs::path& folder, const std::string& version) {
    fs::create_directories(folder / "lib");
    write_text(folder / "lib/libtorch_cpu.so", "");
    write_text(folder / "version.py", "__version__ = '" + version + "'\ndebug = False\n");
  }

 private:
  static inline std::unique_ptr<Scratch> made_;
};

TEST_F(Portable, FitsSizeLimit) {
  for (const auto& file : fs::directory_iterator(root().parent_path() / "file"))
    EXPECT_LE(file.file_size(), kMostBytes);
}

TEST_F(Portable, ContainsNoLocalPath) {
  for (const auto& file : fs::recursive_directory_iterator(root() / "package")) {
    if (!file.is_regular_file()) continue;
    const auto text = read_text(file.path());
    for (const auto& folder :
         {fs::current_path().string(), std::string(MILLRACE_BUILD), std::string(LIBTORCH)})
      EXPECT_EQ(text.find(folder), std::string::npos) << file.path() << " contains " << folder;
  }
}

TEST_F(Portable, EvaluatesWithoutLibtorch) {
  const auto data = make_data();
  const auto truth = read_json(data / "annotations/instances_val2017.json");
  auto found = Json::array();
  for (const auto& object : truth.at("annotations"))
    if (object.at("iscrowd") == 0)
      found.push_back({{"image_id", object.at("image_id")},
                       {"category_id", object.at("category_id")},
                       {"bbox", object.at("bbox")},
                       {"score", 0.9}});
  write_json(data / "found.json", found);
  const auto scores =
      successful(bare({"coco-eval", "--gt", "/data/annotations/instances_val2017.json", "--dt",
                       "/data/found.json", "--iou", "bbox", "--json"},
                      "NOTHING="));
  EXPECT_NEAR(scores.json().at("stats").at(0), 1, 1e-9);
}

TEST_F(Portable, TrainsAndPredictsWithGivenLibtorch) {
  EXPECT_THAT(successful(bare({"--version"})).out,
              AllOf(StartsWith("trainer "), HasSubstr("\nlibtorch "), HasSubstr("/torch\n")));
  successful(bare({"sample", "--out", "/data/set", "--train", "8", "--val", "4"}));
  successful(bare(small({"run", kConfig}, Words{"train.max_steps=3"} + kTrainOnly)));

  // Predicts on images that are not JPEGs.
  fs::create_directories(in_folder("data/pictures"));
  for (const auto* file : {"png/other/rgb_8.png", "webp/other/lossy.webp", "tif/other/rgb_lzw.tif"})
    fs::copy_file(fs::path("tests/dataflow/pictures") / file,
                  in_folder("data/pictures") / fs::path(file).filename());
  successful(bare(small({"predict", kConfig, "/data/pictures", "--weights",
                         "/data/runs/maskrcnn-1/checkpoints/latest", "--out", "/data/found"})));
}

TEST_F(Portable, TrainsWithPackagedMpirun) {
  successful(bare({"sample", "--out", "/data/set", "--train", "8", "--val", "4"}));
  // The variables that the shell script bin/mpirun sets; the bare root has no shell.
  const std::string mpi = "/package/lib/openmpi";
  const auto environment =
      "LIBTORCH=/torch OMPI_ALLOW_RUN_AS_ROOT=1 HOME=/tmp "
      "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_plm=isolated "
      "LD_LIBRARY_PATH=/package/lib OPAL_PREFIX=" +
      mpi + " OPAL_BINDIR=" + mpi + "/bin OPAL_LIBDIR=" + mpi + " OPAL_PKGLIBDIR=" + mpi +
      "/plugins OPAL_PKGDATADIR=" + mpi + "/share/openmpi PMIX_INSTALL_PREFIX=" + mpi + "/pmix";
  successful(bare(small({"run", kConfig}, Words{"train.max_steps=2"} + kTrainOnly), environment,
                  {mpi + "/bin/mpirun", "--oversubscribe", "-n", "2", "/package/bin/trainer"}));
  const auto record = read_json(in_folder("data/runs/maskrcnn-1/record.json"));
  EXPECT_EQ(record.at("starts").at(0).at("ranks").size(), 2U);
}

TEST_F(Portable, ReportsMissingLibtorch) {
  const auto without = successful(bare({"--version"}, "NOTHING="));
  EXPECT_THAT(without.out, AllOf(StartsWith("trainer "), HasSubstr("libtorch")));
  const auto none = bare({"doctor", "x.toml"}, "NOTHING=");
  expect_error(none, 1, "LIBTORCH");
  EXPECT_THAT(none.err, AllOf(HasSubstr("/package/libtorch"), HasSubstr("python3"),
                              HasSubstr("pip install torch==")));
  const auto nowhere = bare({"doctor", "x.toml"}, "LIBTORCH=/nowhere");
  expect_error(nowhere, 1, "LIBTORCH=/nowhere");
  EXPECT_THAT(nowhere.err, HasSubstr("lib/libtorch_cpu.so"));
}

// Libraries are tried in the documented order: LIBTORCH, beside the package, python3's. The first
// two report a wrong version with the same error.
TEST_F(Portable, RejectsWrongLibtorchVersion) {
  make_torch(in_folder("data/old"), "2.9.1+cu128");
  const auto old = bare({"doctor", "x.toml"}, "LIBTORCH=/data/old");
  expect_error(old, 1, "LIBTORCH=/data/old");
  EXPECT_THAT(old.err, HasSubstr("2.9.1+cu128"));
  make_torch(root() / "package/libtorch", "2.12.0");
  const auto beside = bare({"doctor", "x.toml"}, "NOTHING=");
  expect_error(beside, 1, "/package/libtorch");
  EXPECT_THAT(beside.err, HasSubstr("2.12.0"));
  fs::remove_all(root() / "package/libtorch");
}

TEST_F(Portable, FindsPythonsTorch) {
  // Runs outside the bare root, which has no shell.
  fs::create_directories(in_folder("bin"));
  fs::create_directory_symlink(LIBTORCH, in_folder("torch"));
  write_text(in_folder("bin/python3"), "#!/bin/sh\necho " + in_folder("torch").string() + "\n");
  fs::permissions(in_folder("bin/python3"), fs::perms::owner_all);
  const auto path = "PATH=" + in_folder("bin").string() + ":/usr/bin:/bin";
  const auto program = (root() / "package/bin/trainer").string();
  EXPECT_THAT(successful(run("/usr/bin/env", {"-i", path, program, "--version"})).out,
              HasSubstr(in_folder("torch").string()));

  // Processes started by a run have the environment of the caller.
  const auto config = (root() / "package/share/millrace/configs/maskrcnn.toml").string();
  successful(
      run("/usr/bin/env",
          Words{"-i", path, "LD_LIBRARY_PATH=/mine", program} +
              with_settings({"run", config},
                            Words{setting("data.root", make_data()), "data.short_side=96",
                                  "data.max_side=160", "model.backbone.width=16",
                                  "train.max_steps=1", setting("train.output", in_folder("run")),
                                  "callbacks.run_command.command='env >" +
                                      in_folder("environment").string() + "'"} +
                                kTrainOnly)));
  EXPECT_THAT(read_text(in_folder("environment")),
              AllOf(HasSubstr("LD_LIBRARY_PATH=/mine\n"), Not(HasSubstr("MILLRACE_ADDED"))));
}

}  // namespace
}  // namespace millrace::testing
