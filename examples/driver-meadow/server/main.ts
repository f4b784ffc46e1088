import { Meadow } from "./meadow.ts";

// node examples/driver-meadow/server/main.ts [PORT]
const [, , port = "8090"] = process.argv;
console.log(`the meadow is at ${await new Meadow("green-grass-of-home").start(Number(port))}`);
