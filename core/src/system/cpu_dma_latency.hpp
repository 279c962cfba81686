// Idle states of the CPUs, kept off.
#pragma once

namespace rtmeter {

// Holds /dev/cpu_dma_latency at 0 for its lifetime.
class CpuDmaLatency {
 public:
  CpuDmaLatency();  // throws Failure
  ~CpuDmaLatency();
  CpuDmaLatency(const CpuDmaLatency&) = delete;
  CpuDmaLatency& operator=(const CpuDmaLatency&) = delete;

 private:
  int fd_;
};

}  // namespace rtmeter
