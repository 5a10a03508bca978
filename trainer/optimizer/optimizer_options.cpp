#include "millrace/trainer/optimizer/optimizer_options.h"

#include "millrace/base/options.h"

namespace millrace {

void ParameterRule::describe(Options& o) {
  o.add("match", match, "names of parameters; * stands for any characters: \"backbone.*\"");
  o.add("lr_factor", lr_factor, "their rate is this times the others'", {.min = 0});
  o.add("weight_decay", weight_decay, "of them; negative: as without this rule");
  o.add("frozen", frozen, "they are not trained");
}

void ParameterRule::check(const Config& table) const {
  if (frozen)
    refuse_unused<ParameterRule>(table, {"lr_factor", "weight_decay"}, "with frozen = true");
}

void OptimizerOptions::describe(Options& o) {
  o.add("type", type, "stochastic gradient descent with momentum, or AdamW");
  o.add("lr", lr, "learning rate at lr_batch images a step; scaled linearly", {.min = 0});
  o.add("lr_batch", lr_batch, "images a step that lr is meant for", {.min = 1, .unit = "images"});
  o.add("momentum", momentum, "share of the last direction that is kept; beta1 of adamw",
        {.min = 0, .max = 1});
  o.add("nesterov", nesterov, "look one step of momentum ahead (sgd)");
  o.add("beta2", beta2, "share of the last squared gradients that is kept (adamw)",
        {.min = 0, .max = 0.999999});
  o.add("epsilon", epsilon, "added to the root of the squared gradients (adamw)", {.min = 1e-16});
  o.add("weight_decay", weight_decay, "of weights", {.min = 0});
  o.add("weight_decay_bias", weight_decay_bias, "of biases; negative: as weight_decay");
  o.add("weight_decay_norm", weight_decay_norm, "of normalisations' scale and shift", {.min = 0});
  o.add("bias_lr_factor", bias_lr_factor, "factor of the biases' learning rate, also of norms",
        {.min = 0});
  o.add("clip_norm", clip_norm, "largest norm of all gradients together; 0: any", {.min = 0});
  o.add("clip_value", clip_value, "largest number of a gradient, after clip_norm; 0: any",
        {.min = 0});
  o.add("trust", trust, "rate of each weight by its norm over its gradient's (sgd)");
  o.add("trust_coefficient", trust_coefficient, "how far a weight may move, in shares of its norm",
        {.min = 1e-12});
  o.add("accumulate", accumulate, "batches whose gradients make one step",
        {.min = 1, .max = 4096, .unit = "batches"});
}

void OptimizerOptions::check(const Config& table) const {
  const bool adamw = type == OptimizerType::adamw;
  require(table, "momentum", !adamw || momentum < 1, "must be below 1 for type = \"adamw\"");
  require(table, "nesterov", !adamw || !nesterov, "is for type = \"sgd\"");
  require(table, "trust", !adamw || trust == Trust::none, "is for type = \"sgd\"");
  require(table, "clip_value", clip_value == 0 || trust == Trust::none,
          "and trust exclude each other: the ratio is of the whole gradient");
  require(table, "nesterov", !nesterov || momentum > 0, "changes nothing with momentum = 0");
  if (!adamw) refuse_unused<OptimizerOptions>(table, {"beta2", "epsilon"}, "with type = \"sgd\"");
  if (trust == Trust::none)
    refuse_unused<OptimizerOptions>(table, {"trust_coefficient"}, "with trust = \"none\"");
}

}  // namespace millrace
