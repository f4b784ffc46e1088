import { expect, test } from "vitest";
import { commandOf } from "../src/runs/back-ends.ts";
import { image } from "./support.ts";

const order = {
  image,
  build: "b1",
  base: "/images of mine/noble-b1",
  formats: ["qcow2", "raw"],
  work: "/images of mine/.work/noble-b1",
  elementsDir: "/elements",
};

test("diskimage-builder is run as the old builder runs it", () => {
  expect(commandOf(order)).toEqual({
    argv: [
      "/opt/my dib/disk-image-create",
      "--quiet",
      "-x",
      "-t",
      "qcow2,raw",
      "--checksum",
      "--no-tmpfs",
      "--qemu-img-options",
      "compat=0.10",
      "-o",
      "/images of mine/noble-b1",
      "ubuntu-minimal",
      "vm",
    ],
    env: {
      DIB_RELEASE: "x",
      DIB_IMAGE_NAME: "noble",
      DIB_IMAGE_FILENAME: "/images of mine/noble-b1",
      ELEMENTS_PATH: "/elements",
      NODEYARD_IMAGE_FORMATS: "qcow2 raw",
      // Elements hand TMPDIR on into the image, where no such folder is: ca-certificates then fails to configure.
      TMPDIR: undefined,
      TMP_DIR: "/images of mine/.work/noble-b1",
      // Nobody may set the fields by which a build is found.
      NODEYARD_BUILD: "b1",
    },
  });
  const raw = commandOf({ ...order, formats: ["raw"], elementsDir: null });
  expect(raw.argv).not.toContain("--qemu-img-options");
  expect(raw.env).not.toHaveProperty("ELEMENTS_PATH");
  const own = commandOf({ ...order, image: { ...image, env: { TMPDIR: "/mine" } } });
  expect(own.env.TMPDIR).toBe("/mine");
});

test("any other program is run as it is, with the build's folder for what is temporary", () => {
  const { argv, env } = commandOf({ ...order, image: { ...image, command: ["/bin/make", "a b"] } });
  expect(argv).toEqual(["/bin/make", "a b"]);
  expect(env.TMPDIR).toBe(order.work);
});
