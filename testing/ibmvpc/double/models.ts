import { readFileSync } from "node:fs";
import { join } from "node:path";

/** A property of a model: its type, and whether it must be there. A type is a word, `[T]` for a list, or models of which one has to fit. */
type Property = readonly [type: string, isNeeded: boolean];
type Schema = Readonly<Record<string, Readonly<Record<string, Property>>>>;

/** Calls whose bodies and answers are of a model; a list's is of its collection. */
const REQUESTS: Readonly<Record<string, string>> = {
  "POST instances": "InstancePrototypeInstanceByImageInstanceByImageInstanceByNetworkInterface",
  "POST floating_ips": "FloatingIPPrototypeFloatingIPByTarget|FloatingIPPrototypeFloatingIPByZone",
  "PATCH floating_ips/*": "FloatingIPPatch",
  "POST images": "ImagePrototypeImageByFile",
  "POST instances/*/actions": "InstanceActionPrototype",
};
const ANSWERS: Readonly<Record<string, string>> = {
  ...{
    vpcs: "VPCCollection",
    subnets: "SubnetCollection",
    keys: "KeyCollection",
    volumes: "VolumeCollection",
  },
  ...{ instances: "InstanceCollection", floating_ips: "FloatingIPCollection", images: "ImageCollection" },
  ...{ "instances/*": "Instance", "floating_ips/*": "FloatingIP", "images/*": "Image" },
  ...{ "instance/profiles": "InstanceProfileCollection", "instance/profiles/*": "InstanceProfile" },
  "instances/*/network_interfaces/*/floating_ips/*": "FloatingIP",
  "instances/*/actions/*": "InstanceAction",
};

/** Judges by the models of IBM's SDK for Python (`models.py`): what is missing, and what IBM does not know. */
export class Models {
  readonly #schema: Schema = {
    ...JSON.parse(readFileSync(join(import.meta.dirname, "../models.json"), "utf8")),
    // The SDK has no model of this body: its properties are the arguments of `create_instance_action`.
    InstanceActionPrototype: { type: ["str", true], force: ["bool", false] },
  };

  request(call: string, body: unknown): readonly string[] {
    const model = REQUESTS[call];
    return model === undefined ? [`there is no model of ${call}`] : this.#wrong(model, body, "");
  }

  answer(call: string, value: unknown): readonly string[] {
    const [method, path = ""] = call.split(" ");
    const model =
      ANSWERS[
        method === "POST" ? `${path}/*` : path.replace(/^instance\/profiles\/.*/, "instance/profiles/*")
      ];
    return model === undefined ? [`there is no model of ${call}`] : this.#wrong(model, value, "");
  }

  #wrong(type: string, value: unknown, at: string): readonly string[] {
    if (type.startsWith("[")) {
      if (!Array.isArray(value)) return [`${at} is no list`];
      return value.flatMap((one, index) => this.#wrong(type.slice(1, -1), one, `${at}[${index}]`));
    }
    const names = type.split("|");
    const models = names.map((name) => this.#schema[name]).filter((model) => model !== undefined);
    if (models.length === 0)
      return names.some((name) => isOf(name, value))
        ? []
        : [`${at} is ${JSON.stringify(value)}, and no ${type}`];
    if (typeof value !== "object" || value === null) return [`${at} is no ${type}`];
    const all = models.map((model) => {
      const missing = Object.entries(model).flatMap(([key, [, isNeeded]]) =>
        isNeeded && !(key in value) ? [`${at}.${key} is missing`] : [],
      );
      const inside = Object.entries(value).flatMap(([key, one]) => {
        const property = model[key];
        return property === undefined
          ? [`${at}.${key} is not known`]
          : this.#wrong(property[0], one, `${at}.${key}`);
      });
      return [...missing, ...inside];
    });
    return all.reduce((best, one) => (one.length < best.length ? one : best));
  }
}

function isOf(type: string, value: unknown): boolean {
  if (type === "int" || type === "float") return typeof value === "number";
  if (type === "bool") return typeof value === "boolean";
  if (type === "datetime") return typeof value === "string" && !Number.isNaN(Date.parse(value));
  return type === "str" ? typeof value === "string" : type === "dict" || type === "object";
}
