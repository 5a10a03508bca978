// Only the component `predict`, installed and moved: programs in C, C++ and Python detect objects
// with it.
#include <algorithm>

#include "tests/models/predict/trained.h"

namespace millrace::testing {
namespace {

class InstalledPredict : public Trained {
 protected:
  InstalledPredict() {
    successful(
        run(CMAKE, {"--install", MILLRACE_BUILD, "--prefix", prefix(), "--component", "predict"}));
    // Moved, so that files at the install prefix cannot be used.
    fs::rename(prefix(), in_folder("moved"));
    photos_ = make_photos();
    weights_ = train("configs/maskrcnn.toml");
    successful(trainer(
        with_settings({"predict", "configs/maskrcnn.toml", "--weights", weights_,
                       photos_ / "a_wide.jpg", photos_ / "h.png", "--out", in_folder("seen")},
                      small())));
    detections_ = read_json(in_folder("seen/detections.json"));
    const auto images = read_json(in_folder("seen/images.json"));
    for (const auto& category : images["categories"]) names_[category["id"]] = category["name"];
  }

  fs::path prefix() const { return in_folder("prefix"); }
  fs::path moved() const { return in_folder("moved"); }

  /// Configures and builds <folder>/NAME.
  void build(const std::string& name) const {
    const auto from = in_folder(name), to = in_folder(name) / "build";
    successful(run(CMAKE, {"-S", from, "-B", to, "-DCMAKE_PREFIX_PATH=" + moved().string()}));
    successful(run(CMAKE, {"--build", to}));
  }

  /// Returns a line "NAME SCORE at X1 Y1 X2 Y2" for each object of image `id`; each line begins
  /// with `indent`.
  std::string lines_of(int id, const std::string& indent = "") const {
    std::string text;
    for (const auto& one : detections_) {
      if (one["image_id"] != id) continue;
      const auto& box = one["bbox"];
      char line[200];
      const auto x = box[0].get<double>(), y = box[1].get<double>();
      std::snprintf(line, sizeof line, "%.3f at %.1f %.1f %.1f %.1f", one["score"].get<double>(), x,
                    y, x + box[2].get<double>(), y + box[3].get<double>());
      text += indent + names_.at(one["category_id"]) + " " + line + "\n";
    }
    return text;
  }

  fs::path photos_, weights_;
  Json detections_;
  std::map<int, std::string> names_;
};

TEST_F(InstalledPredict, ContainsLibraryButNoProgram) {
  for (const auto* file :
       {"lib/libmillrace_predict.so", "lib/millrace/image_readers.so", "include/millrace_predict.h",
        "include/millrace/models/predict/predictor.h", "lib/cmake/millrace/millraceConfig.cmake"})
    EXPECT_TRUE(fs::exists(moved() / file)) << file;
  for (const auto* file : {"bin", "share", "include/millrace/trainer"})
    EXPECT_FALSE(fs::exists(moved() / file)) << file;
}

TEST_F(InstalledPredict, CExampleDetects) {
  fs::copy("examples/predict_c", in_folder("predict_c"), fs::copy_options::recursive);
  build("predict_c");
  const auto program = in_folder("predict_c/build/predict_c");
  for (const auto& [id, photo] : {std::pair(1, "a_wide.jpg"), std::pair(2, "h.png")}) {
    const auto seen = successful(run(program, {weights_, photos_ / photo})).out;
    EXPECT_GT(seen.size(), 100U);
    EXPECT_EQ(seen, lines_of(id));
  }
  const auto failed = run(program, {weights_, in_folder("absent.jpg")});
  EXPECT_EQ(failed.exit_code, 1);
  EXPECT_THAT(failed.err, HasSubstr("absent.jpg"));
}

TEST_F(InstalledPredict, PythonExampleDetects) {
  const auto seen = successful(run("/usr/bin/env", {"python3", "examples/predict.py",
                                                    moved() / "lib/libmillrace_predict.so",
                                                    weights_, photos_ / "a_wide.jpg"}))
                        .out;
  std::string without_masks;
  std::istringstream lines(seen);
  for (std::string line; std::getline(lines, line);)
    without_masks += line.substr(0, line.find(',')) + "\n";
  EXPECT_EQ(without_masks, (photos_ / "a_wide.jpg").string() + "\n" + lines_of(1, "  "));
  EXPECT_THAT(seen, HasSubstr(" pixels\n"));
}

TEST_F(InstalledPredict, CppProgramDetects) {
  fs::create_directory(in_folder("program"));
  write_text(in_folder("program/CMakeLists.txt"),
             "cmake_minimum_required(VERSION 3.21)\nproject(program LANGUAGES CXX)\n"
             "find_package(millrace REQUIRED COMPONENTS predict)\n"
             "add_executable(program program.cpp)\n"
             "target_compile_features(program PRIVATE cxx_std_20)\n"
             "target_link_libraries(program PRIVATE millrace::predict)\n");
  write_text(in_folder("program/program.cpp"), R"(#include <cstdio>
#include <millrace/models/predict/predictor.h>
#include <millrace_predict.h>

int main(int, char** argv) try {
  const millrace::Predictor predictor(argv[1]);
  for (const auto& object : predictor.predict(millrace::ImageFile{argv[2]}).objects)
    std::printf("%s %.3f at %.1f %.1f %.1f %.1f\n",
                predictor.classes()[static_cast<std::size_t>(object.label)].c_str(), object.score,
                object.box.x1, object.box.y1, object.box.x2, object.box.y2);
} catch (const millrace::DataError& problem) {
  std::printf("not an image: %s\n", problem.what());
}
)");
  build("program");
  const auto program = in_folder("program/build/program");
  EXPECT_EQ(successful(run(program, {weights_, photos_ / "h.png"})).out, lines_of(2));
  EXPECT_THAT(successful(run(program, {weights_, in_folder("absent.jpg")})).out,
              StartsWith("not an image: " + in_folder("absent.jpg").string()));
}

TEST_F(InstalledPredict, BuildsProgramFromDocumentation) {
  const auto page = read_text("docs/predict.md");
  const auto snippet = [&](const std::string& language) {
    const auto fence = "```" + language + "\n";
    const auto begin = page.find(fence) + fence.size();
    return page.substr(begin, page.find("```", begin) - begin);
  };
  fs::create_directory(in_folder("page"));
  write_text(in_folder("page/CMakeLists.txt"), snippet("cmake"));
  write_text(in_folder("page/my_program.cpp"), snippet("cpp"));
  build("page");
  const auto run_folder = weights_.parent_path().parent_path();
  const auto seen =
      successful(run(in_folder("page/build/my_program"), {run_folder, photos_ / "h.png"})).out;
  EXPECT_EQ(std::ranges::count(seen, '\n'), std::ranges::count(lines_of(2), '\n'));
}

TEST_F(InstalledPredict, RejectsUnknownComponent) {
  fs::create_directory(in_folder("other"));
  write_text(in_folder("other/CMakeLists.txt"),
             "cmake_minimum_required(VERSION 3.21)\nproject(other LANGUAGES C)\n"
             "find_package(millrace REQUIRED COMPONENTS telepathy)\n");
  const auto done = run(CMAKE, {"-S", in_folder("other"), "-B", in_folder("other/build"),
                                "-DCMAKE_PREFIX_PATH=" + moved().string()});
  EXPECT_NE(done.exit_code, 0);
  EXPECT_THAT(done.err, HasSubstr("telepathy"));
}

}  // namespace
}  // namespace millrace::testing
