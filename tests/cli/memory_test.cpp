// Steps that do not fit into memory: refused before they begin, or ended with one sentence.
#include <sys/resource.h>

#include "tests/cli/trainer.h"

namespace millrace::testing {
namespace {

class Memory : public Trainer {
 protected:
  Outcome train(const fs::path& data, const Words& overrides = {}) const {
    return trainer(
        on(data, {"run", "--output", in_folder("runs")}, overrides + Words{"train.max_steps=1"}));
  }
};

TEST_F(Memory, AStepIsToldBeforeItBegins) {
  const auto done = successful(train(make_data()));
  EXPECT_THAT(done.err,
              AllOf(HasSubstr("a step takes about "), HasSubstr("by estimate"),
                    HasSubstr("a batch of 4 images of up to 160 x 96 pixels"), HasSubstr(" free")));
}

TEST_F(Memory, ABatchThatCannotFitIsRefused) {
  const auto data = make_data();
  expect_error(train(data, {"data.batch_size=65536", "data.short_side=800", "data.max_side=1333"}),
               2, "it cannot fit: lower data.batch_size");
}

TEST_F(Memory, ABatchOfMoreThanAllImagesIsToldOf) {
  const auto done = successful(train(make_data(), {"data.batch_size=9"}));
  EXPECT_THAT(done.err,
              HasSubstr("batches of 9 images (data.batch_size) from 8 images: images repeat"));
}

/// The address space of the processes that are started while this lives, bytes.
class AddressSpace {
 public:
  explicit AddressSpace(rlim_t most) {
    getrlimit(RLIMIT_AS, &before_);
    const rlimit limit{most, before_.rlim_max};
    setrlimit(RLIMIT_AS, &limit);
  }
  ~AddressSpace() { setrlimit(RLIMIT_AS, &before_); }

 private:
  rlimit before_{};
};

TEST_F(Memory, AStepThatRunsOutOfMemoryEndsInOneSentence) {
  const auto data = make_data();
  const AddressSpace limit(rlim_t{5} << 29);
  const auto ended = train(data, {"data.short_side=1600", "data.max_side=1600", "data.threads=1",
                                  "train.threads=1", "data.memory=64", "model.backbone.width=64"});
  EXPECT_EQ(ended.exit_code, 1) << ended.err;
  EXPECT_THAT(ended.err,
              AllOf(HasSubstr("step 1: not enough memory for a batch of 4 images padded to "),
                    HasSubstr("lower data.batch_size"), Not(HasSubstr("frame #"))));
}

}  // namespace
}  // namespace millrace::testing
