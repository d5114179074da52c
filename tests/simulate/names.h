// The names of origins: what stands in for Resolver::create in this program. Numeric hosts are what
// they are; of the others the name says how it goes: "plain.test" has one address, "many.test"
// others before it where nobody is, "slow.test" takes its time. Each may fail by the seed where
// Names::fail says so.
#pragma once

namespace encore::simulate {

struct Names {
  // Percent of the questions that fail, in the running simulation.
  static double fail;
};

}  // namespace encore::simulate
