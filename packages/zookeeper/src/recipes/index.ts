export { type Contender, contenderPrefix, holderOf, parseContender, sortContenders } from "./contenders.ts";
