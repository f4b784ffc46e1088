import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { PlcTimeoutError } from "../errors.ts";
import type { Post } from "../plc.ts";
import { agents, type TlsFiles } from "./agent.ts";
import { whyOf } from "./why.ts";

const MAX_REPLY = 16 * 1024 * 1024;

/** Over HTTPS; plain HTTP to this machine only, in tests. */
export function httpPost(url: string, files: () => TlsFiles): Post {
  const isTls = url.startsWith("https:");
  const request = isTls ? httpsRequest : httpRequest;
  const agent = agents(files);
  return (body, signal) =>
    new Promise((resolve, reject) => {
      const headers = { "content-type": "text/xml" };
      const options = { method: "POST", headers, ...(isTls ? { agent: agent() } : {}), signal };
      const fail = (cause: unknown) =>
        reject(new PlcTimeoutError(`${url}: ${whyOf(signal.aborted ? signal.reason : cause)}`, { cause }));
      const call = request(url, options, (answer) => {
        const chunks: Buffer[] = [];
        let size = 0;
        answer.on("data", (chunk: Buffer) => {
          size += chunk.length;
          if (size > MAX_REPLY) call.destroy(new Error("the answer is too long"));
          else chunks.push(chunk);
        });
        answer.on("error", fail);
        answer.on("end", () => {
          if (answer.statusCode === 200) resolve(Buffer.concat(chunks).toString("utf8"));
          else fail(new Error(`HTTP ${answer.statusCode}`));
        });
      });
      call.on("error", fail);
      call.end(body);
    });
}
