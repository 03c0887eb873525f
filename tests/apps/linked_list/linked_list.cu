// Linked lists in device memory, their nodes in random order over two
// allocations: one kernel walks and updates them, the other reverses them in
// place by rewriting the pointers.
// --size: number of lists.
#include "../common/app.h"

struct Node {
  Node* next;
  int key;
  int value;
};

constexpr int kBlock = 128;
constexpr int kMinLength = 16;
constexpr int kMaxLength = 64;

// Adds each node's position in the list times its key to the node's value, and
// sums the values.
__global__ void VisitKernel(Node* const* heads, long long* sums,
                            int list_count) {
  int list = blockIdx.x * blockDim.x + threadIdx.x;
  if (list >= list_count) return;
  long long sum = 0;
  int position = 1;
  for (Node* node = heads[list]; node != nullptr; node = node->next) {
    node->value += position * node->key;
    sum += node->value;
    ++position;
  }
  sums[list] = sum;
}

__global__ void ReverseKernel(Node** heads, int list_count) {
  int list = blockIdx.x * blockDim.x + threadIdx.x;
  if (list >= list_count) return;
  Node* reversed = nullptr;
  Node* node = heads[list];
  while (node != nullptr) {
    Node* next = node->next;
    node->next = reversed;
    reversed = node;
    node = next;
  }
  heads[list] = reversed;
}

// 0 to count - 1 in random order (Fisher-Yates).
std::vector<size_t> RandomOrder(size_t count) {
  std::vector<size_t> order(count);
  for (size_t i = 0; i < count; ++i) order[i] = i;
  for (size_t i = count; i > 1; --i) {
    std::swap(order[i - 1], order[apps::HashBits(3, i) % i]);
  }
  return order;
}

int main(int argc, char** argv) {
  const apps::Options options = apps::ParseOptions(
      argc, argv, "linked_list", {1 << 17, 600, 1 << 22, "number of lists"});
  const int list_count = static_cast<int>(options.size);

  std::vector<int> lengths(list_count);
  size_t node_count = 0;
  for (int list = 0; list < list_count; ++list) {
    // Every 50th list is empty.
    lengths[list] =
        list % 50 == 7
            ? 0
            : kMinLength + static_cast<int>(apps::HashBits(1, list) %
                                            (kMaxLength - kMinLength + 1));
    node_count += lengths[list];
  }
  const size_t first_half = node_count / 2;
  apps::DeviceArray<Node> low_nodes(first_half);
  apps::DeviceArray<Node> high_nodes(node_count - first_half);
  const auto address = [&](size_t slot) {
    return slot < first_half ? low_nodes.get() + slot
                             : high_nodes.get() + (slot - first_half);
  };

  // slots[k] is where the k-th node, counted list after list, lives.
  const std::vector<size_t> slots = RandomOrder(node_count);
  std::vector<Node> nodes(node_count);
  std::vector<Node*> heads(list_count, nullptr);
  size_t k = 0;
  for (int list = 0; list < list_count; ++list) {
    if (lengths[list] > 0) heads[list] = address(slots[k]);
    for (int position = 0; position < lengths[list]; ++position, ++k) {
      const bool last = position + 1 == lengths[list];
      nodes[slots[k]] = {last ? nullptr : address(slots[k + 1]),
                         static_cast<int>(apps::HashBits(2, k) % 100), 0};
    }
  }
  CUDA_CHECK(cudaMemcpy(low_nodes.get(), nodes.data(), low_nodes.bytes(),
                        cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(high_nodes.get(), nodes.data() + first_half,
                        high_nodes.bytes(), cudaMemcpyHostToDevice));
  apps::DeviceArray<Node*> device_heads(heads);
  apps::DeviceArray<long long> device_sums(list_count);

  apps::RunIterations(options, [&] {
    const int blocks = apps::BlocksFor(list_count, kBlock);
    VisitKernel<<<blocks, kBlock>>>(device_heads.get(), device_sums.get(),
                                    list_count);
    ReverseKernel<<<blocks, kBlock>>>(device_heads.get(), list_count);
  });

  // Odd-numbered visits meet the list in its first order, even-numbered ones
  // reversed.
  const int forward_visits = (options.iterations + 1) / 2;
  const int backward_visits = options.iterations / 2;
  const bool reversed = options.iterations % 2 == 1;
  const std::vector<long long> sums = device_sums.ToHost();
  const std::vector<Node*> got_heads = device_heads.ToHost();
  std::vector<Node> got_nodes = low_nodes.ToHost();
  const std::vector<Node> high = high_nodes.ToHost();
  got_nodes.insert(got_nodes.end(), high.begin(), high.end());
  apps::Checker checker;
  k = 0;
  for (int list = 0; list < list_count; ++list) {
    const int length = lengths[list];
    Node* expected_head =
        length == 0 ? nullptr : address(slots[reversed ? k + length - 1 : k]);
    checker.Expect("head is the expected node", list,
                   got_heads[list] == expected_head, 1, apps::kExact);
    long long sum = 0;
    for (int position = 0; position < length; ++position) {
      const Node& node = got_nodes[slots[k + position]];
      const int value = nodes[slots[k + position]].key *
                        (forward_visits * (position + 1) +
                         backward_visits * (length - position));
      sum += value;
      checker.Expect("value", slots[k + position], node.value, value,
                     apps::kExact);
      const int after = reversed ? position - 1 : position + 1;
      Node* expected_next =
          after < 0 || after >= length ? nullptr : address(slots[k + after]);
      checker.Expect("next is the expected node", slots[k + position],
                     node.next == expected_next, 1, apps::kExact);
    }
    checker.Expect("sum", list, sums[list], sum, apps::kExact);
    k += length;
  }
  return checker.Finish();
}
