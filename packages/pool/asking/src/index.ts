export { Answerer } from "./answerer.ts";
export { askMembers, type MemberAnswers, type Silent } from "./ask-members.ts";
export {
  type About,
  type Answer,
  type BuildLogPart,
  type BuildLogRange,
  type ConsoleEnd,
  type ImageOutlook,
  type ImageWork,
  MEMBERS,
  type PoolOutlook,
  type ProviderUse,
  type TenantUse,
  type Testimony,
  testimonySchema,
  type UnderWay,
} from "./records.ts";
