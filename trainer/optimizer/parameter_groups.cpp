#include "millrace/trainer/optimizer/parameter_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "millrace/base/errors.h"
#include "millrace/base/log.h"
#include "millrace/base/text.h"

namespace millrace {
namespace {

/// Parameters that a rule applies to.
struct RuleMatches {
  std::int64_t tensors = 0, values = 0;
  bool has_matched = false;  // true if it matches a name, which an earlier rule may have taken
};

/// Returns candidates for a suggested pattern: names, and their prefixes up to each dot.
std::vector<std::string> beginnings(const Parameters& parameters) {
  std::set<std::string> all;
  for (const auto& parameter : parameters) {
    const auto& name = parameter.name;
    all.insert(name);
    for (auto dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1))
      all.insert(name.substr(0, dot) + ".*");
  }
  return {all.begin(), all.end()};
}

std::string nearest(const Parameters& parameters, const std::string& pattern) {
  const auto known = beginnings(parameters);
  if (const auto near = nearest_name(pattern, known); !near.empty())
    return fmt::format("; did you mean '{}'?", near);
  std::vector<std::string> first;
  for (const auto& name : known)
    if (name.find('.') + 2 == name.size() || name.find('.') == std::string::npos)
      first.push_back(name);
  return "; known: " + joined(first);
}

void log_rule(const ParameterRule& rule, const RuleMatches& matches) {
  std::string how = rule.frozen ? "frozen" : fmt::format("learning rate x {}", rule.lr_factor);
  if (!rule.frozen && rule.weight_decay >= 0)
    how += fmt::format(", weight decay {}", rule.weight_decay);
  log_info("optimizer.groups '{}': {}, {} values: {}", rule.match,
           counted(matches.tensors, "tensor"), matches.values, how);
}

/// Returns the index of the first rule that matches, or the number of rules if none does.
std::size_t rule_of(const std::string& name, const std::vector<ParameterRule>& rules,
                    std::vector<RuleMatches>& matches) {
  auto first = rules.size();
  for (std::size_t i = rules.size(); i-- > 0;) {
    if (!matches_wildcards(rules[i].match, name)) continue;
    matches[i].has_matched = true;
    first = i;
  }
  return first;
}

/// Returns the group of a parameter, without names and values.
ParameterGroup group_of(const Parameter& parameter, const OptimizerOptions& options,
                        const ParameterRule& rule) {
  const auto kind = parameter.kind;
  const bool bias = kind == ParameterKind::bias;
  // Like detectron2, this includes the biases of normalization layers.
  const bool has_own_rate =
      bias || (kind == ParameterKind::norm && parameter.name.ends_with("bias"));
  ParameterGroup group{.lr_factor = rule.lr_factor * (has_own_rate ? options.bias_lr_factor : 1),
                       .trusted = options.trust != Trust::none && kind == ParameterKind::weight};
  if (rule.weight_decay >= 0) {
    group.decay = Decay::own;
    group.own_decay = rule.weight_decay;
  } else if (kind == ParameterKind::norm) {
    group.decay = Decay::of_norms;
  } else if (bias && options.weight_decay_bias >= 0) {
    group.decay = Decay::of_biases;
  }
  return group;
}

bool are_alike(const ParameterGroup& a, const ParameterGroup& b) {
  return a.decay == b.decay && a.own_decay == b.own_decay && a.lr_factor == b.lr_factor &&
         a.trusted == b.trusted;
}

}  // namespace

double ParameterGroup::weight_decay(const OptimizerOptions& options) const {
  if (decay == Decay::own) return own_decay;
  if (decay == Decay::of_norms) return options.weight_decay_norm;
  return decay == Decay::of_biases ? options.weight_decay_bias : options.weight_decay;
}

std::vector<ParameterGroup> group_parameters(const Parameters& parameters,
                                             const OptimizerOptions& options) {
  const auto& rules = options.groups;
  std::vector<ParameterGroup> groups;
  std::vector<RuleMatches> matches(rules.size());
  for (const auto& parameter : parameters) {
    if (parameter.kind == ParameterKind::buffer) continue;
    const auto place = rule_of(parameter.name, rules, matches);
    const auto rule = place < rules.size() ? rules[place] : ParameterRule{};
    if (place < rules.size()) {
      matches[place].tensors += 1;
      matches[place].values += parameter.value.numel();
    }
    if (rule.frozen) parameter.value.set_requires_grad(false);
    if (!parameter.trainable()) continue;
    auto wanted = group_of(parameter, options, rule);
    auto group = std::ranges::find_if(groups, [&](const auto& g) { return are_alike(g, wanted); });
    if (group == groups.end()) group = groups.insert(groups.end(), std::move(wanted));
    group->names.push_back(parameter.name);
    group->values.push_back(parameter.value);
  }
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if (matches[i].tensors == 0)
      throw ConfigError(
          fmt::format("optimizer.groups: match = '{}' matches no parameter{}", rules[i].match,
                      matches[i].has_matched
                          ? ", since earlier rules match all of its parameters; move it before them"
                          : nearest(parameters, rules[i].match)));
    log_rule(rules[i], matches[i]);
  }
  return groups;
}

std::vector<std::string> frozen_parameters(const Parameters& parameters,
                                           const OptimizerOptions& options) {
  std::vector<std::string> names;
  for (const auto& parameter : parameters) {
    if (parameter.kind == ParameterKind::buffer) continue;
    const auto rule = std::ranges::find_if(options.groups, [&](const auto& one) {
      return matches_wildcards(one.match, parameter.name);
    });
    const bool by_rule = rule != options.groups.end() && rule->frozen;
    if (by_rule || !parameter.trainable()) names.push_back(parameter.name);
  }
  return names;
}

}  // namespace millrace
