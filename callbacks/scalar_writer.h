// What all callbacks that write figures into a file have in common.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "trainer/train_state.h"

namespace millrace {

/// Appends the scalars of steps, averaged over windows as long as `every` says, and what callbacks publish. What speaks of
/// an earlier moment is written when it becomes known. Figures that depend on the clock or the machine are called
/// "time/...": all others are the same in every run of a configuration. A resumed run first drops what was
/// written after its checkpoint.
class ScalarWriter : public Callback {
 public:
  void before_train(TrainState& state) override;
  void after_step(TrainState& state) override;
  void trigger(TrainState&) override { is_due_ = true; }
  void on_scalars(TrainState& state, const Moment& of, const Scalars& published) override;
  std::string save_state() const override;
  void load_state(const std::string& text) override;

 protected:
  /// What a file held when the checkpoint was taken that a run goes on from.
  struct Written {
    std::string file;  // its name; empty: there was none
    std::uintmax_t bytes = 0;
  };

  /// Drops what was written after a checkpoint and gives the file to append to. `then`: what there was; nothing where
  /// this callback had no part in the checkpoint, so that whatever is there stays.
  virtual std::filesystem::path open(const TrainState& state,
                                     const std::optional<Written>& then) = 0;

  /// The bytes that say it.
  virtual std::string encode(const Moment& of, const Scalars& scalars) = 0;

  void append(std::string_view bytes) const;

 private:
  struct Mean {
    double sum = 0;
    std::int64_t count = 0;
  };

  std::filesystem::path file_;
  std::optional<Written> then_;
  std::map<std::string, Mean> window_;
  bool is_due_ = false;
};

/// The options of most of them.
struct ScalarWriterOptions {
  std::string every = "20 steps";
  void describe(Options& o) { o.add("every", every, "losses are averaged over so long"); }
};

/// By the calendar's clock, to the millisecond: for people to read, never to decide by.
double seconds_since_1970();

}  // namespace millrace
