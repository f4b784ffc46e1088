import { simulate } from "./run.ts";
import { timeline } from "./timeline.ts";

/** Runs one seed, and prints it line by line. */
export async function runOne(seed: number): Promise<void> {
  try {
    const result = await simulate({ seed, ...timeline((line) => console.log(line)) });
    console.log(JSON.stringify(result));
  } catch (error) {
    console.log((error as Error).stack);
    process.exitCode = 1;
  }
}
