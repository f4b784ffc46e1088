import { Keys } from "@nodeyard/connect";
import { z } from "zod";

const file = z.string().min(1);

/** Keys of a section of Zuul. */
export const options = z.strictObject({
  zookeeper: z
    .strictObject({
      servers: z.string().min(1).describe("as `hosts` in zuul.conf: HOST:PORT, with commas between"),
      ca: file.describe("PEM file"),
      cert: file.describe("PEM file"),
      key: file.describe("PEM file"),
      "session-seconds": z
        .int()
        .min(1)
        .max(120)
        .default(15)
        .describe("a lock of a connector that died is free after so long"),
    })
    .describe("the ZooKeeper of Zuul"),
  connection: z
    .string()
    .min(1)
    .describe("a connection of zuul.conf that is in no connection_filter of zuul-launcher"),
  labels: z
    .record(z.string(), Keys.label)
    .default({})
    .describe("labels of the pool by those of Zuul; others have the same name"),
  "keep-seconds": Keys.seconds
    .default(86_400)
    .describe("a lease is made for so long, and extended while Zuul keeps the node"),
  "heartbeat-seconds": Keys.seconds.default(900).describe("leases survive the connector for so long"),
});
export type Options = z.output<typeof options>;
