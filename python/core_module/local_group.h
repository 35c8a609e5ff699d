// Ranks as threads of one process: the collectives without a network, for gradwire.compare.
#ifndef GRADWIRE_CORE_MODULE_LOCAL_GROUP_H_
#define GRADWIRE_CORE_MODULE_LOCAL_GROUP_H_

#include <pybind11/pybind11.h>

#include <cstdint>
#include <string>
#include <vector>

#include "gradwire/collective.h"

namespace gradwire::internal {

// A group of `world` ranks over the local transport. Not thread safe. After an error the group is
// retired and every later call fails, as the Communicator's contract says.
class LocalGroup {
 public:
  // Raises OutOfRange unless `world` is 2 to 64.
  explicit LocalGroup(int world);

  // Replaces each of the `world` buffers (contiguous, writable, values of dtype) by the mean over
  // them, one thread for each rank. `part_counts`: values of the parameters that lie one after
  // the other in every buffer; part i is tensor i for the noise. Returns raw_bytes and bytes_out
  // added up over the ranks. The caller holds the GIL, which is released while the ranks work.
  pybind11::dict all_reduce(const std::vector<pybind11::object>& arrays, const std::string& dtype,
                            const std::vector<std::uint64_t>& part_counts, const std::string& codec,
                            std::uint64_t step);

  int world() const noexcept { return static_cast<int>(ranks_.size()); }

 private:
  std::vector<Communicator> ranks_;
};

void define_local_group(pybind11::module_& module);

}  // namespace gradwire::internal

#endif  // GRADWIRE_CORE_MODULE_LOCAL_GROUP_H_
