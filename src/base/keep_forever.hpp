// Memory that must outlive everything, because the message-passing layer may still read or write it.
#pragma once

#include <memory>

namespace kedge {

/// Never frees the memory. For memory of messages that were in progress when a wait timed out: the message-passing
/// layer may use it until the process ends. A list refers to it, so that leak checkers can tell it from lost memory.
void keep_forever(std::shared_ptr<const void> memory) noexcept;

}  // namespace kedge
