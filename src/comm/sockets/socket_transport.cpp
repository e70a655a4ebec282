#include "comm/sockets/socket_transport.hpp"

#include <utility>

namespace kedge::comm {
namespace {

class SocketTransfer final : public Transport::Transfer {
 public:
  SocketTransfer(std::shared_ptr<Mesh> mesh, std::shared_ptr<MessageState> message)
      : mesh_(std::move(mesh)), message_(std::move(message)) {}
  [[nodiscard]] bool test() override { return mesh_->test(*message_); }
  [[nodiscard]] bool wait(Deadline deadline) override { return mesh_->wait(*message_, deadline); }

 private:
  std::shared_ptr<Mesh> mesh_;
  std::shared_ptr<MessageState> message_;
};

}  // namespace

std::unique_ptr<Transport> SocketTransport::open_channel(Deadline /*deadline*/) {
  return std::make_unique<SocketTransport>(mesh_, mesh_->next_channel());
}

std::unique_ptr<Transport::Transfer> SocketTransport::send(int to, int tag, std::span<const std::byte> bytes) {
  return std::make_unique<SocketTransfer>(mesh_, mesh_->send(to, lane(tag), bytes));
}

std::unique_ptr<Transport::Transfer> SocketTransport::receive(int from, int tag, std::span<std::byte> bytes) {
  return std::make_unique<SocketTransfer>(mesh_, mesh_->receive(from, lane(tag), bytes));
}

}  // namespace kedge::comm
