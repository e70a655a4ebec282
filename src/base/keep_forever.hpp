// Memory that must outlive everything, because somebody else may still read or write it.
#pragma once

#include <memory>

namespace kedge {

/// Never frees it. For what messages under way point to after a wait gave up on them: the message-passing layer may use
/// that memory until the process ends. Kept in a list, so that leak checkers can tell it from memory that was lost.
void keep_forever(std::shared_ptr<const void> memory) noexcept;

}  // namespace kedge
