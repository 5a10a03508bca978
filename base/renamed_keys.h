// Former names of configuration keys and losses: an old name is an error that says the new one, and
// what an earlier version has written (weights, checkpoints) is read with the new names.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "millrace/base/config.h"

namespace millrace {

/// "model.width is called model.backbone.width now" for an option that was called `was`; empty if
/// none of those `known` in its table was.
std::string renamed_key(std::string_view was, const std::function<bool(std::string_view)>& known);

/// The new name of a loss, or of a scalar of validation ("val/mask"); empty: it was never renamed.
std::string renamed_loss(std::string_view was);

/// The value of `type`, the key that chooses an implementation, or nullptr. Throws ConfigError if
/// the table has the key's old name `was`.
const Config* find_type(const Config& table, std::string_view was);

/// A [model] table, or a whole configuration, with today's names. Leaves one that has them already.
Config with_new_model_keys(Config model);
Config with_new_keys(Config tree);

}  // namespace millrace
