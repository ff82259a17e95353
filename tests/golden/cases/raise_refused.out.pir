# refused: node 'attention/softmax' (Softmax) cannot be written for opset 13: the rank of its input is not known
