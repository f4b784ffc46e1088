import { describe, expect, test } from "vitest";
import { COUNTERS, readUsage, withRate } from "../../src/isolation/cgroups/usage.ts";

describe("what a sliver uses", () => {
  test("in v2", () => {
    const texts = new Map([
      ["memory.current", "4096\n"],
      ["memory.pressure", "some avg10=12.50 avg60=0.00 avg300=0.00 total=1\nfull avg10=3.00 avg60=0.00\n"],
      ["cpu.stat", "usage_usec 2500000\nuser_usec 1\nnr_periods 7\nthrottled_usec 1000400\n"],
      ["io.stat", "7:0 rbytes=10 wbytes=20 rios=1 wios=2\n7:1 rbytes=5 wbytes=1 rios=1 wios=1\n"],
      ["pids.current", "3\n"],
      ["pids.events", "max 2\n"],
    ]);
    const counters = Object.values(COUNTERS).flatMap((versions) => versions[2]);
    expect(readUsage(counters, texts)).toEqual({
      memory: 4096,
      memoryPressure: 12.5,
      cpu: 2500,
      throttled: 1000,
      pids: 3,
      pidsRefused: 2,
      ioRead: 15,
      ioWritten: 21,
      ioReadOps: 2,
      ioWriteOps: 3,
    });
  });

  test("in v1, as far as that counts", () => {
    const texts = new Map([
      ["memory.usage_in_bytes", "4096\n"],
      ["memory.max_usage_in_bytes", "8192\n"],
      ["cpu.stat", "nr_periods 2\nnr_throttled 1\nthrottled_time 5000000\n"],
      ["cpuacct.usage", "238342899\n"],
      [
        "blkio.throttle.io_service_bytes_recursive",
        "7:0 Read 10\n7:0 Write 3\n7:0 Total 13\n8:0 Read 5\nTotal 18\n",
      ],
      ["blkio.throttle.io_serviced_recursive", "7:0 Read 4\n7:0 Write 2\n7:0 Total 6\nTotal 6\n"],
    ]);
    const counters = Object.values(COUNTERS).flatMap((versions) => versions[1]);
    expect(readUsage(counters, texts)).toEqual({
      memory: 4096,
      memoryPeak: 8192,
      throttled: 5,
      cpu: 238,
      ioRead: 15,
      ioWritten: 3,
      ioReadOps: 4,
      ioWriteOps: 2,
    });
  });

  test("before its first use of a disk that is 0, not unknown", () => {
    expect(readUsage(COUNTERS.io![2], new Map([["io.stat", ""]]))).toEqual({
      ioRead: 0,
      ioWritten: 0,
      ioReadOps: 0,
      ioWriteOps: 0,
    });
    const bytes = new Map([["blkio.throttle.io_service_bytes_recursive", "Total 0\n"]]);
    expect(readUsage(COUNTERS.io![1], bytes)).toEqual({ ioRead: 0, ioWritten: 0 });
  });

  test("of the CPU also now, once it was read twice since the start", () => {
    const half = { cpu: 16_000, cpuNow: 500 };
    expect(withRate({ cpu: 16_000 }, { cpu: 1_000 }, 30_000)).toEqual(half);
    expect(withRate({ cpu: 16_000 }, { cpu: 16_000, cpuNow: 9 }, 30_000)).toEqual({ cpu: 16_000, cpuNow: 0 });
    for (const before of [undefined, {}, { cpu: 20_000 }])
      expect(withRate({ cpu: 16_000 }, before, 30_000)).toEqual({ cpu: 16_000 });
    expect(withRate({ memory: 1 }, { cpu: 1 }, 30_000)).toEqual({ memory: 1 });
    expect(withRate({ cpu: 2 }, { cpu: 1 }, 0)).toEqual({ cpu: 2 });
  });
});
