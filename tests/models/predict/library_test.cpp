// libmillrace_predict.so: its linked libraries, its exported symbols, and its Predictor.
#include <dlfcn.h>

#include "millrace/models/predict/predictor.h"
#include "tests/models/predict/trained.h"

namespace millrace::testing {
namespace {

class Library : public Trained {
 protected:
  std::string output_of(const fs::path& program, const Words& arguments) const {
    return successful(run(program, arguments)).out;
  }
};

TEST_F(Library, DoesNotLoadTrainerLibraries) {
  const auto loaded = output_of("/usr/bin/ldd", {MILLRACE_PREDICT});
  EXPECT_THAT(loaded, HasSubstr("libtorch_cpu.so"));
  for (const auto* name : {"libmpi", "libopen-", "libzmq", "liblmdb", "libhwloc", "libpmix",
                           "libmsgpack", "not found"})
    EXPECT_THAT(loaded, Not(HasSubstr(name)));
}

TEST_F(Library, ExportsOnlyVersionedInterface) {
  std::istringstream symbols(output_of("/usr/bin/nm", {"-DC", "--defined-only", MILLRACE_PREDICT}));
  int of_c = 0, of_cpp = 0;
  for (std::string line; std::getline(symbols, line);) {
    const auto name = line.substr(19);
    if (line[17] == 'A') continue;  // a symbol version
    const bool c = name.starts_with("millrace_predict_") || name.starts_with("millrace_result_");
    EXPECT_TRUE(c || name.starts_with("millrace::Predictor::")) << name;
    EXPECT_THAT(name, HasSubstr(c ? "@@MILLRACE_PREDICT_1" : "@@MILLRACE_"));
    ++(c ? of_c : of_cpp);
  }
  EXPECT_EQ(of_c, 13);
  EXPECT_GE(of_cpp, 10);
}

TEST_F(Library, DetectsWithRepositoryPlugins) {
  const auto output = in_folder("runs");
  successful(trainer(with_settings(
      {"run", "configs/yolox.toml", "--out", output},
      Words{setting("data.root", make_data()), "data.short_side=96", "data.max_side=96",
            "data.batch_size=2", "data.train='val2017'", "model.width=0.125",
            "model.test.score_thresh=0.00001", "train.max_steps=1"} +
          kTrainOnly)));
  const Predictor predictor(output / "yolox-1", {.threads = 1});  // a run folder
  const auto photo = make_photos() / "h.png";
  const auto seen = predictor.predict(ImageFile{photo});
  successful(trainer({"predict", output / "yolox-1", photo, "--out", in_folder("seen")}));
  const auto expected = read_json(in_folder("seen/detections.json"));
  EXPECT_FALSE(expected.empty());
  EXPECT_EQ(seen.objects.size(), expected.size());
}

TEST_F(Library, ThrowsCatchableErrors) {
  const auto weights = train("configs/retinanet.toml");
  const Predictor predictor(weights, {.threads = 1});
  EXPECT_FALSE(predictor.gives_masks());
  EXPECT_FALSE(predictor.predict(ImageFile{make_photos() / "h.png"}).objects.empty());
  EXPECT_THROW(predictor.predict(ImageFile{in_folder("absent.jpg")}), DataError);
  EXPECT_THROW(Predictor{in_folder("absent")}, Error);
}

}  // namespace
}  // namespace millrace::testing
