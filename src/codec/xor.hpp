// XOR over spans of bytes, by ISA-L: any alignment, length and count. Pure.
#pragma once

#include <cstddef>
#include <span>

namespace kedge::codec {

/// out = XOR of the inputs; an input shorter than `out` is continued with zeros, none may be longer. No inputs
/// give zeros. `out` may be one of the inputs, and overlaps nothing else.
void xor_into(std::span<std::byte> out, std::span<const std::span<const std::byte>> inputs);

}  // namespace kedge::codec
