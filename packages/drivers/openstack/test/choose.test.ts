import { expect, test } from "vitest";
import { chooseFlavor, chooseImage, chooseNetwork } from "../src/lookups/choose.ts";

const flavors = [
  { id: "1", name: "Fake Large", ram: 16_384, vcpus: 8 },
  { id: "2", name: "Fake B", ram: 8_192, vcpus: 4 },
  { id: "3", name: "Other", ram: 8_192, vcpus: 4 },
  { id: "4", name: "Fake A", ram: 8_192, vcpus: 4 },
  { id: "Other", name: "trap", ram: 1, vcpus: 1 },
];
const name = (minRam: number, flavorName: string | null) => {
  const chosen = chooseFlavor(flavors, { minRam, flavorName });
  return typeof chosen === "string" ? chosen : chosen.name;
};

test("the smallest that has the RAM, by RAM and name, whose name contains the text", () => {
  expect(name(8_192, "Fake")).toBe("Fake A");
  expect(name(8_193, null)).toBe("Fake Large");
  expect(name(1, "B")).toBe("Fake B");
  expect(name(20_000, "Fake")).toContain("no flavor has 20000 MiB and Fake in its name; the cloud has");
});

test("a name alone is exact, and goes before an id", () => {
  expect(name(0, "Other")).toBe("Other");
  expect(name(0, "1")).toBe("Fake Large");
  expect(name(0, "Fake")).toContain("there is no flavor Fake");
});

test("of two networks or images with one name none is guessed", () => {
  const networks = [
    { id: "1", name: "a", "router:external": false },
    { id: "2", name: "a", "router:external": false },
    { id: "a2", name: "b", "router:external": false },
  ];
  expect(chooseNetwork(networks, "a")).toContain("2 networks have that name");
  expect(chooseNetwork(networks, "2")).toMatchObject({ id: "2" });
  expect(chooseNetwork(networks, "c")).toContain("it sees a, a, b");
  const image = (id: string, status = "active") => ({ id, name: "i", status });
  expect(chooseImage([image("1"), image("2")], "i")).toContain("use image-id");
  expect(chooseImage([image("1", "queued"), image("2")], "i")).toMatchObject({ id: "2" });
  expect(chooseImage([image("1", "queued")], "i")).toBe("there is no active image i");
});
