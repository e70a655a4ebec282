// Pure. XOR over spans of bytes of any alignment, length and count, by ISA-L.
#pragma once

#include <cstddef>
#include <span>

namespace kedge::codec {

/// Sets `out` to the XOR of the inputs. Inputs shorter than `out` are continued with zeros; none may be longer. Without
/// inputs, `out` becomes zeros. It may be one of the inputs, and must not overlap others.
void xor_into(std::span<std::byte> out, std::span<const std::span<const std::byte>> inputs);

}  // namespace kedge::codec
