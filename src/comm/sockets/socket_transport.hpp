// Messages over TCP sockets of Kedge's own: for threads that may not use the application's message layer.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "comm/sockets/mesh.hpp"
#include "kedge/transport.hpp"

namespace kedge::comm {

/// A channel of a mesh. All channels share the mesh: one thread at a time uses any of them.
class SocketTransport final : public Transport {
 public:
  explicit SocketTransport(MeshPlan plan) : SocketTransport(std::make_shared<Mesh>(std::move(plan)), 0) {}
  SocketTransport(std::shared_ptr<Mesh> mesh, std::uint16_t channel) : mesh_(std::move(mesh)), channel_(channel) {}

  [[nodiscard]] int rank() const noexcept override { return mesh_->rank(); }
  [[nodiscard]] int size() const noexcept override { return mesh_->size(); }
  [[nodiscard]] std::string library() const override { return "TCP"; }
  [[nodiscard]] std::unique_ptr<Transport> open_channel(Deadline deadline) override;
  [[nodiscard]] std::unique_ptr<Transfer> send(int to, int tag, std::span<const std::byte> bytes) override;
  [[nodiscard]] std::unique_ptr<Transfer> receive(int from, int tag, std::span<std::byte> bytes) override;
  void interrupt() noexcept override { mesh_->interrupt(); }
  void leave(std::string_view why) noexcept override { mesh_->leave(why); }

 private:
  [[nodiscard]] Lane lane(int tag) const noexcept { return {channel_, static_cast<std::uint32_t>(tag)}; }

  std::shared_ptr<Mesh> mesh_;
  std::uint16_t channel_;
};

}  // namespace kedge::comm
