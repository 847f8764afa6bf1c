"""What NASLib's source tree imports; the tree itself is on no registry."""

import fvcore.nn
import networkx
import PIL.Image
import sklearn.ensemble
import xgboost

assert fvcore.nn.FlopCountAnalysis and networkx.DiGraph() is not None and PIL.Image and sklearn.ensemble
assert xgboost.XGBRegressor(n_estimators=2).fit([[0.0], [1.0]], [0.0, 1.0]).predict([[1.0]]).shape == (1,)
