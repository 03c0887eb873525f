// Spaces as YAML:
//
//   parameters:                     # in this order; names as in an expression
//     launch.block.x: {ordinal: [32, 64, 128, 256], scale: log, initial: 64}
//     tile:      {integer: {from: 1, to: 64, step: 1}, scale: log, initial: 4}
//     layout:    {categorical: [row, column, blocked], initial: row}
//     vectorize: {boolean: false}
//     width:     {ordinal: [2, 4, 8], initial: 4, when: {vectorize: true}}
//     loops:     {permutation: [i, j, k]}
//     pipeline:  {pipeline: {target: nvptx, max_edits: 8}}
//   constraints:                    # expression.h
//     - launch.block.x * tile <= 1024
//     - {holds: width <= tile, because: vectors do not cross tiles}
//
// `initial` may be left out: then it is the first value. `scale` is linear
// where it is left out. The levels of an ordinal are numbers, or
// {value: default, at: 64} for one that is not and lies where 64 would. `when`
// names parameters further up, each with a value or a list of values; all must
// hold. Of a boolean the value itself is the initial one; of a permutation the
// items' order; of a pipeline {} is target host and at most 8 edits.
//
// Quotes make text of what would be a number, true or false. Thread-safe.
#ifndef REPRISE_BAYESOPT_SPACE_READER_H_
#define REPRISE_BAYESOPT_SPACE_READER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "bayesopt/space.h"

namespace reprise::bayesopt {

// `source` names the text in messages ("space.yaml"). INVALID_ARGUMENT begins
// with source:line and says what is there and what was expected; also for more
// than 1 MiB, 1,000 parameters or 10,000 values of one.
absl::StatusOr<std::shared_ptr<const Space>> ReadSpace(
    const std::string& text, const std::string& source);

}  // namespace reprise::bayesopt

#endif  // REPRISE_BAYESOPT_SPACE_READER_H_
