#include "bayesopt/candidate_posterior.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "bayesopt/vector_loops.h"

namespace reprise::bayesopt {
void CandidatePosterior::Reset(Points candidates) {
  points_ = std::move(candidates);
  rows_.clear();
  row_data_.clear();
}

void CandidatePosterior::Truncate(size_t size) {
  rows_.resize(std::min(size, rows_.size()));
  row_data_.resize(rows_.size());
}

void CandidatePosterior::AddRow(const GaussianProcess& process) {
  const size_t n = rows_.size();
  const auto factor = process.FactorRow(n);
  Eigen::ArrayXf row;
  process.kernel().Against(points_, process.point(n), row);
  std::vector<float> weights(factor.begin(), factor.end() - 1);
  SubtractCombination(row_data_.data(), weights.data(), n, candidates(),
                      row.data());
  row *= static_cast<float>(1 / factor[n]);
  row_data_.push_back(row.data());
  rows_.push_back(std::move(row));
}

void CandidatePosterior::Update(const GaussianProcess& process) {
  while (rows_.size() < process.size()) AddRow(process);
  const Eigen::Index count = points_.cols();
  mean_.setConstant(count, static_cast<float>(process.mean()));
  variance_.setConstant(
      count,
      static_cast<float>(process.kernel().parameters().signal_variance()));
  const std::vector<float> weights(process.whitened().begin(),
                                   process.whitened().end());
  AddPrediction(row_data_.data(), weights.data(), rows_.size(), candidates(),
                mean_.data(), variance_.data());
  variance_ = variance_.max(1e-9F);
}

}  // namespace reprise::bayesopt
