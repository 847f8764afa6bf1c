"""Our tuner in NNI's hands, and one of our strategies over a model space of NNI."""

import nni_ext  # before NNI: see its docstring  # isort: skip

import nni
import torch
from nni.nas.evaluator import FunctionalEvaluator
from nni.nas.experiment import NasExperiment, NasExperimentConfig
from nni.nas.hub.pytorch import NasBench201

tuner = nni_ext.SearchTuner(strategy="random", evaluations=4)
tuner.update_search_space({"x": {"_type": "choice", "_value": [1, 2, 3]}, "y": {"_type": "choice", "_value": [1, 2]}})
for number in range(3):
    parameters = tuner.generate_parameters(number)
    tuner.receive_trial_result(number, parameters, {"default": 1.0, "loss": 1.0})
    tuner.trial_end(number, True)

space, image = NasBench201(), torch.rand(2, 3, 32, 32)
strategy = nni_ext.SearchStrategy("random", evaluations=2)
evaluator = FunctionalEvaluator(lambda net: nni.report_final_result(net(image).std().item()))
NasExperiment(space, evaluator, strategy, NasExperimentConfig("sequential", "raw", "local")).run()
assert strategy.best().sample
