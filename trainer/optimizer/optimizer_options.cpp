#include "millrace/trainer/optimizer/optimizer_options.h"

namespace millrace {

void ParameterRule::describe(Options& o) {
  o.add("match", match, "name pattern of the parameters, e.g. \"backbone.*\"; * = any characters");
  o.add("lr_factor", lr_factor, "factor of the matched parameters' learning rate", {.min = 0});
  o.add("weight_decay", weight_decay, "weight decay of the matched parameters; negative = inherit");
  o.add("frozen", frozen, "do not train the matched parameters");
}

void ParameterRule::check(const Config& table) const {
  if (frozen)
    refuse_unused<ParameterRule>(table, {"lr_factor", "weight_decay"}, "with frozen = true");
}

void OptimizerOptions::describe(Options& o) {
  o.add("type", type, "optimizer: stochastic gradient descent with momentum, or AdamW");
  o.add("lr", lr, "learning rate for lr_batch images per step; scaled linearly", {.min = 0});
  o.add("lr_batch", lr_batch, "images per step for which lr is given",
        {.min = 1, .unit = "images"});
  o.add("momentum", momentum, "momentum of sgd, beta1 of adamw", {.min = 0, .max = 1});
  o.add("nesterov", nesterov, "use Nesterov momentum (sgd)");
  o.add("beta2", beta2, "decay of the average of squared gradients (adamw)",
        {.min = 0, .max = 0.999999});
  o.add("epsilon", epsilon, "constant added to the square root of the squared gradients (adamw)",
        {.min = 1e-16});
  o.add("weight_decay", weight_decay, "weight decay of weights", {.min = 0});
  o.add("weight_decay_bias", weight_decay_bias, "weight decay of biases; negative = weight_decay");
  o.add("weight_decay_norm", weight_decay_norm, "weight decay of the scale and shift of norms",
        {.min = 0});
  o.add("bias_lr_factor", bias_lr_factor,
        "learning rate factor of biases, including those of norms", {.min = 0});
  o.add("clip_norm", clip_norm, "maximum norm of all gradients together; 0 = unlimited",
        {.min = 0});
  o.add("clip_value", clip_value,
        "maximum absolute value in a gradient, after clip_norm; 0 = unlimited", {.min = 0});
  o.add("trust", trust,
        "learning rate of each weight by the ratio of its norm to its gradient's norm (sgd)");
  o.add("trust_coefficient", trust_coefficient,
        "step of a weight as a fraction of its norm, with trust", {.min = 1e-12});
  o.add("accumulate", accumulate, "number of batches whose gradients are combined in a step",
        {.min = 1, .max = 4096, .unit = "batches"});
}

void OptimizerOptions::check(const Config& table) const {
  const bool adamw = type == OptimizerType::adamw;
  require(table, "momentum", !adamw || momentum < 1, "must be below 1 for type = \"adamw\"");
  require(table, "nesterov", !adamw || !nesterov, "requires type = \"sgd\"");
  require(table, "trust", !adamw || trust == Trust::none, "requires type = \"sgd\"");
  require(table, "clip_value", clip_value == 0 || trust == Trust::none,
          "cannot be combined with trust, whose ratio is of the whole gradient");
  require(table, "nesterov", !nesterov || momentum > 0, "has no effect with momentum = 0");
  if (!adamw) refuse_unused<OptimizerOptions>(table, {"beta2", "epsilon"}, "with type = \"sgd\"");
  if (trust == Trust::none)
    refuse_unused<OptimizerOptions>(table, {"trust_coefficient"}, "with trust = \"none\"");
}

}  // namespace millrace
